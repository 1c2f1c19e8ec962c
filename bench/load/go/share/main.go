// share-load consume|latency --address HOST:PORT --topic NAME --group NAME --consumers N: members of a share group (franz-go) on one
// partition. Every record is accepted; one counts when the broker has confirmed that.
package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"headrace.dev/load/load"
)

func main() {
	load.Main(map[string]load.Kind{"consume": consume, "latency": latency})
}

// members joins the group with every client at once; got is called with the records of one poll, before they are acknowledged.
func members(ctx context.Context, o load.Options, got func([]*kgo.Record), finished func(int)) (*sync.WaitGroup, error) {
	var running sync.WaitGroup
	for range o.Consumers {
		client, err := kgo.NewClient(kgo.SeedBrokers(o.Address), kgo.ConsumeTopics(o.Topic), kgo.ShareGroup(o.Group))
		if err != nil {
			return nil, err
		}
		running.Add(1)
		go func() {
			defer running.Done()
			for ctx.Err() == nil {
				records := client.PollFetches(ctx).Records()
				if len(records) == 0 {
					continue
				}
				got(records)
				client.MarkAcks(kgo.AckAccept, records...)
				if client.FlushAcks(ctx) == nil {
					finished(len(records))
				}
			}
			client.LeaveGroupContext(context.Background())
			client.Close()
		}()
	}
	return &running, nil
}

// consume times from the first delivery, so that joining the group does not count.
func consume(o load.Options) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Until(o.Deadline()))
	defer cancel()
	var first, last, done, bytes atomic.Int64
	begin := time.Now()
	running, err := members(ctx, o, func(records []*kgo.Record) {
		first.CompareAndSwap(0, int64(time.Since(begin))+1)
		for _, record := range records {
			bytes.Add(int64(len(record.Value)))
		}
	}, func(count int) {
		if done.Add(int64(count)) >= int64(o.Records) {
			last.CompareAndSwap(0, int64(time.Since(begin)))
			cancel()
		}
	})
	if err != nil {
		return nil, err
	}
	running.Wait()
	if last.Load() == 0 {
		return nil, fmt.Errorf("%d of %d records were finished within the time limit", done.Load(), o.Records)
	}
	return load.Throughput(int(done.Load()), bytes.Load(), time.Duration(last.Load()-first.Load())), nil
}

// latency begins when the members have records: until then probes are sent, which are not timed.
func latency(o load.Options) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Until(o.Deadline()))
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(o.Address), kgo.DefaultProduceTopic(o.Topic), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	pace := load.NewPace(o)
	var one sync.Mutex
	var probes atomic.Int64
	running, err := members(ctx, o, func(records []*kgo.Record) {
		one.Lock()
		defer one.Unlock()
		for _, record := range records {
			if len(record.Value) == o.Size {
				pace.Arrived(record.Value)
			} else {
				probes.Add(1)
			}
		}
	}, func(int) {})
	if err != nil {
		return nil, err
	}
	for probes.Load() < 20 {
		if err := producer.ProduceSync(ctx, &kgo.Record{Value: []byte("probe")}).FirstErr(); err != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	err = pace.Run(o, func(value []byte) error {
		producer.Produce(ctx, &kgo.Record{Value: value}, nil)
		return nil
	})
	cancel()
	running.Wait()
	if err != nil {
		return nil, err
	}
	return pace.Answer(o), nil
}
