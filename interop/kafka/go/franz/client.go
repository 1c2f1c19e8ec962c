package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"headrace.dev/interop/records"
)

// newClient makes a client that speaks the protocol of the Kafka release in MAX_KAFKA_VERSION, or the newest it knows.
func newClient(bootstrap string, options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if release := os.Getenv("MAX_KAFKA_VERSION"); release != "" {
		versions := kversion.FromString(release)
		if versions == nil {
			return nil, fmt.Errorf("%s is no Kafka release that franz-go knows", release)
		}
		options = append(options, kgo.MaxVersions(versions))
	}
	secure, err := security()
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(options, secure...)...)
}

// security reads TLS_CA (a PEM file), SASL_MECHANISM, SASL_USER and SASL_PASSWORD: how a secured broker is reached.
func security() ([]kgo.Opt, error) {
	var options []kgo.Opt
	if os.Getenv("TLS_CA") != "" {
		config, err := records.TLS()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	login := scram.Auth{User: os.Getenv("SASL_USER"), Pass: os.Getenv("SASL_PASSWORD")}
	switch mechanism := os.Getenv("SASL_MECHANISM"); mechanism {
	case "":
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: login.User, Pass: login.Pass}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(login.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(login.AsSha512Mechanism()))
	default:
		return nil, fmt.Errorf("this program does not log in with %s", mechanism)
	}
	return options, nil
}
