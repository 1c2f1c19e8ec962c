// franz COMMAND BOOTSTRAP …: franz-go against any broker; records in and out as JSON lines, offsets, admin calls, groups, transactions.
package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"headrace.dev/interop/records"
)

func main() {
	records.Main(map[string]records.Command{"write": write, "read": read, "offsets": offsets, "admin": admin, "group": group, "chain": etl, "steady": steady})
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// write sends standard input's records with the idempotent producer, which is franz-go's default.
func write(bootstrap string, args []string) error {
	topic, compression := args[0], args[1]
	input, err := records.Read()
	if err != nil {
		return err
	}
	client, err := newClient(bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[compression]), kgo.ProducerLinger(20*time.Millisecond),
		kgo.ProducerBatchMaxBytes(8<<20))
	if err != nil {
		return err
	}
	defer client.Close()
	var batch []*kgo.Record
	for _, r := range input {
		record := &kgo.Record{Topic: topic, Partition: r.Partition, Timestamp: time.UnixMilli(r.Timestamp), Key: r.Key, Value: r.Value}
		for _, header := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Key, Value: header.Value})
		}
		batch = append(batch, record)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	results := client.ProduceSync(ctx, batch...)
	if err := results.FirstErr(); err != nil {
		return err
	}
	last := map[int32]int64{}
	for _, result := range results {
		before, seen := last[result.Record.Partition]
		if seen && result.Record.Offset != before+1 {
			return fmt.Errorf("offsets of %s-%d jumped from %d to %d", topic, result.Record.Partition, before, result.Record.Offset)
		}
		last[result.Record.Partition] = result.Record.Offset
	}
	return nil
}

// read prints every record of the topics, from the beginning to the end that each partition has now.
func read(bootstrap string, topics []string) error {
	client, err := newClient(bootstrap, kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(context.Background(), topics...)
	if err != nil {
		return err
	}
	left := int64(0)
	ends.Each(func(end kadm.ListedOffset) { left += end.Offset })
	return printRecords(client, left)
}

func printRecords(client *kgo.Client, left int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%d records were still to come: %w", left, err)
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			out := records.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
			for _, header := range r.Headers {
				out.Headers = append(out.Headers, records.Header{Key: header.Key, Value: header.Value})
			}
			if err := records.Print(out); err != nil {
				failed = err
			}
			left--
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// offsets looks up earliest, latest, max (largest timestamp) or the first offset at or after a time.
func offsets(bootstrap string, args []string) error {
	topic, which := args[0], args[1]
	client, err := newClient(bootstrap)
	if err != nil {
		return err
	}
	defer client.Close()
	admin, ctx := kadm.NewClient(client), context.Background()
	var listed kadm.ListedOffsets
	switch which {
	case "earliest":
		listed, err = admin.ListStartOffsets(ctx, topic)
	case "latest":
		listed, err = admin.ListEndOffsets(ctx, topic)
	case "max":
		listed, err = admin.ListMaxTimestampOffsets(ctx, topic)
	default:
		millis, bad := strconv.ParseInt(which, 10, 64)
		if bad != nil {
			return bad
		}
		listed, err = admin.ListOffsetsAfterMilli(ctx, millis, topic)
	}
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return err
	}
	found := map[int32]int64{}
	listed.Each(func(offset kadm.ListedOffset) { found[offset.Partition] = offset.Offset })
	return records.PrintOffsets(found)
}

// group reads at least a number of records as a member (cooperative-sticky), commits what it printed and leaves.
func group(bootstrap string, args []string) error {
	topic, name := args[0], args[1]
	atLeast, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	client, err := newClient(bootstrap, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.FetchMaxBytes(4096), kgo.FetchMaxPartitionBytes(1024))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := printRecords(client, atLeast); err != nil {
		return err
	}
	if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
		return err
	}
	return client.LeaveGroupContext(context.Background())
}
