// rabbitmq-load produce|consume|latency|delete --address HOST:PORT --topic NAME: the same loads on a RabbitMQ stream.
package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"

	"headrace.dev/load/load"
)

func main() {
	load.Main(map[string]load.Kind{"produce": produce, "consume": consume, "latency": latency, "delete": remove})
}

func connect(o load.Options) (*stream.Environment, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	// The client's own 8 KiB socket buffers are smaller than a loopback packet, and every batch would wait for a TCP timer.
	options := stream.NewEnvironmentOptions().SetHost(host).SetPort(number).SetReadBuffer(1 << 20).SetWriteBuffer(1 << 20)
	environment, err := stream.NewEnvironment(options.SetAddressResolver(stream.AddressResolver{Host: host, Port: number}))
	if err != nil {
		return nil, err
	}
	err = environment.DeclareStream(o.Topic, stream.NewStreamOptions())
	if err != nil && !errors.Is(err, stream.StreamAlreadyExists) {
		return nil, err
	}
	return environment, nil
}

// publisher sends in batches and counts the broker's confirmations; at most InFlight records wait for theirs.
type publisher struct {
	producer  *stream.Producer
	confirmed atomic.Int64
	refused   atomic.Int64
	room      chan struct{}
}

func newPublisher(environment *stream.Environment, o load.Options) (*publisher, error) {
	producer, err := environment.NewProducer(o.Topic, stream.NewProducerOptions())
	if err != nil {
		return nil, err
	}
	p := &publisher{producer: producer, room: make(chan struct{}, 1)}
	go func(confirmations stream.ChannelPublishConfirm) {
		for statuses := range confirmations {
			for _, status := range statuses {
				if !status.IsConfirmed() {
					p.refused.Add(1)
				}
			}
			p.confirmed.Add(int64(len(statuses)))
			select {
			case p.room <- struct{}{}:
			default:
			}
		}
	}(producer.NotifyPublishConfirmation())
	return p, nil
}

func (p *publisher) waitUntilConfirmed(least int64, deadline time.Time) error {
	for p.confirmed.Load() < least {
		select {
		case <-p.room:
		case <-time.After(time.Until(deadline)):
			return fmt.Errorf("%d records were not confirmed within the time limit", least-p.confirmed.Load())
		}
	}
	if p.refused.Load() > 0 {
		return fmt.Errorf("%d records were refused", p.refused.Load())
	}
	return nil
}

func produce(o load.Options) (map[string]any, error) {
	environment, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer environment.Close()
	p, err := newPublisher(environment, o)
	if err != nil {
		return nil, err
	}
	payload, start, deadline, sent := load.NewPayload(o.Size), time.Now(), o.Deadline(), 0
	batch := make([]message.StreamMessage, 0, o.Batch)
	for o.More(sent, start) {
		batch = batch[:0]
		for len(batch) < o.Batch && o.More(sent, start) {
			batch = append(batch, amqp.NewMessage(payload.Record(sent)))
			sent++
		}
		if err := p.producer.BatchSend(batch); err != nil {
			return nil, err
		}
		if err := p.waitUntilConfirmed(int64(sent-o.InFlight+len(batch)), deadline); err != nil {
			return nil, err
		}
	}
	if err := p.waitUntilConfirmed(int64(sent), deadline); err != nil {
		return nil, err
	}
	return load.Throughput(sent, int64(sent)*int64(o.Size), time.Since(start)), nil
}

func consume(o load.Options) (map[string]any, error) {
	environment, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer environment.Close()
	start, count, bytes, done := time.Now(), 0, int64(0), make(chan struct{})
	_, err = environment.NewConsumer(o.Topic, func(_ stream.ConsumerContext, message *amqp.Message) {
		if count < o.Records {
			bytes += int64(len(message.GetData()))
			if count++; count == o.Records {
				close(done)
			}
		}
	}, stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First()))
	if err != nil {
		return nil, err
	}
	select {
	case <-done:
	case <-time.After(time.Until(o.Deadline())):
		return nil, fmt.Errorf("fewer than %d records arrived within the time limit", o.Records)
	}
	return load.Throughput(count, bytes, time.Since(start)), nil
}

func latency(o load.Options) (map[string]any, error) {
	environment, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer environment.Close()
	pace := load.NewPace(o)
	_, err = environment.NewConsumer(o.Topic, func(_ stream.ConsumerContext, message *amqp.Message) {
		pace.Arrived(message.GetData())
	}, stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First()))
	if err != nil {
		return nil, err
	}
	p, err := newPublisher(environment, o)
	if err != nil {
		return nil, err
	}
	err = pace.Run(o, func(value []byte) error {
		return p.producer.BatchSend([]message.StreamMessage{amqp.NewMessage(value)})
	})
	if err != nil {
		return nil, err
	}
	return pace.Answer(o), nil
}

func remove(o load.Options) (map[string]any, error) {
	environment, err := connect(o)
	if err != nil {
		return nil, err
	}
	defer environment.Close()
	return map[string]any{}, environment.DeleteStream(o.Topic)
}
