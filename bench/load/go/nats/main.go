// nats-load produce|consume|latency|delete --address HOST:PORT --topic NAME: the same loads on a NATS JetStream file stream.
package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"headrace.dev/load/load"
)

func main() {
	load.Main(map[string]load.Kind{"produce": produce, "consume": consume, "latency": latency, "delete": remove})
}

func connect(o load.Options, options ...jetstream.JetStreamOpt) (*nats.Conn, jetstream.JetStream, error) {
	connection, err := nats.Connect("nats://" + o.Address)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(connection, options...)
	return connection, js, err
}

func stream(o load.Options, js jetstream.JetStream) (jetstream.Stream, error) {
	return js.CreateOrUpdateStream(context.Background(), jetstream.StreamConfig{
		Name: o.Topic, Subjects: []string{o.Topic}, Storage: jetstream.FileStorage,
	})
}

// produce publishes with up to InFlight messages waiting for their acknowledgement; NATS has no batches.
func produce(o load.Options) (map[string]any, error) {
	var failed atomic.Pointer[error]
	connection, js, err := connect(o, jetstream.WithPublishAsyncMaxPending(o.InFlight),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { failed.Store(&err) }))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if _, err := stream(o, js); err != nil {
		return nil, err
	}
	payload, start, sent := load.NewPayload(o.Size), time.Now(), 0
	for ; o.More(sent, start); sent++ {
		if o.InFlight == 1 {
			_, err = js.Publish(context.Background(), o.Topic, payload.Record(sent))
		} else {
			_, err = js.PublishAsync(o.Topic, payload.Record(sent))
		}
		if err != nil {
			return nil, err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Until(o.Deadline())):
		return nil, fmt.Errorf("%d messages were not acknowledged within the time limit", js.PublishAsyncPending())
	}
	elapsed := time.Since(start)
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return load.Throughput(sent, int64(sent)*int64(o.Size), elapsed), nil
}

// consume reads the stream from its first message with an ordered consumer, NATS's own way to replay.
func consume(o load.Options) (map[string]any, error) {
	connection, js, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	s, err := stream(o, js)
	if err != nil {
		return nil, err
	}
	consumer, err := s.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return nil, err
	}
	start, count, bytes := time.Now(), 0, int64(0)
	done := make(chan struct{})
	session, err := consumer.Consume(func(message jetstream.Msg) {
		if count < o.Records {
			bytes += int64(len(message.Data()))
			if count++; count == o.Records {
				close(done)
			}
		}
	}, jetstream.PullMaxMessages(50000))
	if err != nil {
		return nil, err
	}
	defer session.Stop()
	select {
	case <-done:
	case <-time.After(time.Until(o.Deadline())):
		return nil, fmt.Errorf("fewer than %d messages arrived within the time limit", o.Records)
	}
	return load.Throughput(count, bytes, time.Since(start)), nil
}

func latency(o load.Options) (map[string]any, error) {
	connection, js, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	s, err := stream(o, js)
	if err != nil {
		return nil, err
	}
	consumer, err := s.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy})
	if err != nil {
		return nil, err
	}
	pace := load.NewPace(o)
	session, err := consumer.Consume(func(message jetstream.Msg) { pace.Arrived(message.Data()) })
	if err != nil {
		return nil, err
	}
	defer session.Stop()
	time.Sleep(500 * time.Millisecond) // the ordered consumer creates itself in the background
	err = pace.Run(o, func(value []byte) error {
		_, err := js.PublishAsync(o.Topic, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pace.Answer(o), nil
}

func remove(o load.Options) (map[string]any, error) {
	connection, js, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	return map[string]any{}, js.DeleteStream(context.Background(), o.Topic)
}
