// Everything that franz-go's client for schema registries can ask, in one go: `schemas URL` prints what it found.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	order  = `{"type":"record","name":"Order","namespace":"go","fields":[{"name":"id","type":"long"}]}`
	grown  = `{"type":"record","name":"Order","namespace":"go","fields":[{"name":"id","type":"long"},{"name":"note","type":"string","default":""}]}`
	broken = `{"type":"record","name":"Order","namespace":"go","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}`
	basket = `{"type":"record","name":"Basket","namespace":"go","fields":[{"name":"order","type":"go.Order"}]}`
	item   = "syntax = \"proto3\"; package go; message Item { int32 id = 1; }"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func same(what string, got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		fmt.Fprintf(os.Stderr, "%s: %v, not %v\n", what, got, wanted)
		os.Exit(1)
	}
}

func refused(what string, err error, code int) {
	var response *sr.ResponseError
	if !errors.As(err, &response) || response.ErrorCode != code {
		fmt.Fprintf(os.Stderr, "%s: %v, not %d\n", what, err, code)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	client := must(sr.NewClient(sr.URLs(os.Args[1])))
	same("types", must(client.SupportedTypes(ctx)), "[AVRO PROTOBUF JSON]")
	first := must(client.CreateSchema(ctx, "go-orders", sr.Schema{Schema: order}))
	same("version", first.Version, 1)
	same("again", must(client.RegisterSchema(ctx, "go-orders", sr.Schema{Schema: order}, -1, -1)), first.ID)
	_, err := client.CreateSchema(ctx, "go-orders", sr.Schema{Schema: broken})
	refused("incompatible", err, 40901)
	checked := must(client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "go-orders", -1, sr.Schema{Schema: broken}))
	same("compatible", checked.Is, false)
	same("messages", len(checked.Messages) > 0, true)
	second := must(client.CreateSchema(ctx, "go-orders", sr.Schema{Schema: grown}))
	same("versions", must(client.SubjectVersions(ctx, "go-orders")), "[1 2]")
	same("text", must(client.SchemaTextByID(ctx, second.ID)), grown)
	same("text of a version", must(client.SchemaTextByVersion(ctx, "go-orders", 1)), order)
	same("looked up", must(client.LookupSchema(ctx, "go-orders", sr.Schema{Schema: order})).Version, 1)
	reference := sr.SchemaReference{Name: "go.Order", Subject: "go-orders", Version: 1}
	outer := must(client.CreateSchema(ctx, "go-baskets", sr.Schema{Schema: basket, References: []sr.SchemaReference{reference}}))
	same("referring", must(client.SchemaReferences(ctx, "go-orders", 1))[0].ID, outer.ID)
	_, err = client.DeleteSubject(ctx, "go-orders", sr.SoftDelete)
	refused("referred to", err, 42206)
	must(client.CreateSchema(ctx, "go-items", sr.Schema{Schema: item, Type: sr.TypeProtobuf}))
	level := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive}, "go-orders")[0]
	same("level", must(level.Level, level.Err), sr.CompatFullTransitive)
	mode := client.SetMode(ctx, sr.ModeReadOnly, "go-orders")[0]
	same("mode", must(mode.Mode, mode.Err), sr.ModeReadOnly)
	_, err = client.CreateSchema(ctx, "go-orders", sr.Schema{Schema: `"string"`})
	refused("read-only", err, 42205)
	must(0, client.ResetMode(ctx, "go-orders")[0].Err)
	must(0, client.ResetCompatibility(ctx, "go-orders")[0].Err)
	same("deleted", must(client.DeleteSubject(ctx, "go-baskets", sr.SoftDelete)), "[1]")
	same("for good", must(client.DeleteSubject(ctx, "go-baskets", sr.HardDelete)), "[1]")
	must(0, client.DeleteSchema(ctx, "go-orders", 1, sr.SoftDelete))
	_, err = client.SchemaByVersion(ctx, "go-orders", 1)
	refused("deleted version", err, 40402)
	same("subjects", must(client.Subjects(ctx)), "[go-items go-orders]")
	same("usages", len(must(client.SchemaUsagesByID(ctx, second.ID))), 1)
	var serde sr.Serde
	serde.Register(second.ID, []byte{}, sr.EncodeFn(func(v any) ([]byte, error) { return v.([]byte), nil }))
	number, rest, err := serde.DecodeID(must(serde.Encode([]byte("x"))))
	same("id in a record", must(number, err), second.ID)
	same("rest", string(rest), "x")
	fmt.Println("ok")
}
