package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const etlLimit = 150 * time.Second

// etl copies a topic to another with franz-go's GroupTransactSession, and starts anew after every failure until all is committed.
func etl(bootstrap string, args []string) error {
	from, to := args[0], args[1]
	expected, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), etlLimit)
	defer cancel()
	for {
		err := copyAll(ctx, bootstrap, from, to, expected)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the copy did not end within %s: %w", etlLimit, err)
		}
		fmt.Fprintln(os.Stderr, "starting anew after", err)
		time.Sleep(100 * time.Millisecond)
	}
}

func copyAll(ctx context.Context, bootstrap, from, to string, expected int64) error {
	name := from + "-etl"
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.TransactionalID(name), kgo.ConsumerGroup(name), kgo.ConsumeTopics(from),
		kgo.DefaultProduceTopic(to), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ProducerLinger(0), kgo.TransactionTimeout(20*time.Second),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second))
	if err != nil {
		return err
	}
	defer session.Close()
	for {
		polling, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		fetches := session.PollRecords(polling, 20)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if fetches.NumRecords() == 0 {
			done, err := committed(ctx, session.Client(), name, from)
			if err != nil || done == expected {
				return err
			}
			continue
		}
		if err := copySome(ctx, session, fetches); err != nil {
			return err
		}
	}
}

// copySome is one transaction: the records, and the offsets after them.
func copySome(ctx context.Context, session *kgo.GroupTransactSession, fetches kgo.Fetches) error {
	if err := session.Begin(); err != nil {
		return err
	}
	var lock sync.Mutex
	var failed error
	fetches.EachRecord(func(r *kgo.Record) {
		session.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				lock.Lock()
				failed = err
				lock.Unlock()
			}
		})
	})
	flushing, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if err := session.Client().Flush(flushing); err != nil {
		return err
	}
	lock.Lock()
	wanted := kgo.TransactionEndTry(failed == nil)
	lock.Unlock()
	ended, err := session.End(flushing, wanted)
	if err != nil {
		return err
	}
	if ended {
		fmt.Println("committed", fetches.NumRecords())
	}
	return nil
}

func committed(ctx context.Context, client *kgo.Client, group, topic string) (int64, error) {
	asking, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	offsets, err := kadm.NewClient(client).FetchOffsets(asking, group)
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for _, offset := range offsets[topic] {
		sum += offset.At
	}
	return sum, nil
}
