package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// steady sends numbered records, one every 5 ms, and reads them beside that, whatever happens to the brokers meanwhile:
// every one must be acknowledged, and arrive once and in order. It prints each number as it is acknowledged.
func steady(bootstrap string, args []string) error {
	topic := args[0]
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
	defer cancel()
	producer, err := newClient(bootstrap, kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		return err
	}
	defer producer.Close()
	arrived := make(chan error, 1)
	go func() { arrived <- expect(ctx, bootstrap, topic, count) }()
	acknowledged := make(chan error, count)
	for number := range count {
		value := []byte(strconv.Itoa(number))
		producer.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err == nil {
				fmt.Println(number)
			}
			acknowledged <- err
		})
		time.Sleep(5 * time.Millisecond)
	}
	for range count {
		if err := <-acknowledged; err != nil {
			return err
		}
	}
	return <-arrived
}

func expect(ctx context.Context, bootstrap, topic string, count int) error {
	consumer, err := newClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer consumer.Close()
	for next := 0; next < count; {
		fetches := consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%d of %d records arrived in time", next, count)
		}
		var wrong error
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != strconv.Itoa(next) && wrong == nil {
				wrong = fmt.Errorf("at offset %d came %s where %d was due", r.Offset, r.Value, next)
			}
			next++
		})
		if wrong != nil {
			return wrong
		}
	}
	return nil
}
