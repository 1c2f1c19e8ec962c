package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"headrace.dev/interop/records"
)

type walk struct {
	ctx       context.Context
	bootstrap string
	client    *kgo.Client
	admin     *kadm.Client
	topic     string
}

// admin walks through the admin calls: what must work works, what must be refused is refused with Kafka's own error.
func admin(bootstrap string, args []string) error {
	client, err := newClient(bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	w := walk{ctx, bootstrap, client, kadm.NewClient(client), args[0]}
	for _, step := range []func() error{w.creation, w.configs, w.partitions, w.deletingRecords, w.epochs, w.deletion} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w walk) creation() error {
	retention := "3600000"
	if _, err := w.admin.ValidateCreateTopics(w.ctx, 3, 1, nil, w.topic); err != nil {
		return err
	}
	made, err := w.admin.CreateTopic(w.ctx, 3, 1, map[string]*string{"retention.ms": &retention}, w.topic)
	if err != nil {
		return err
	}
	if err := records.Check(made.NumPartitions == 3 && made.ReplicationFactor == 1, "CreateTopics answered %+v", made); err != nil {
		return err
	}
	_, err = w.admin.CreateTopic(w.ctx, 3, 1, nil, w.topic)
	if err := records.Refused(err, kerr.TopicAlreadyExists); err != nil {
		return err
	}
	_, err = w.admin.CreateTopic(w.ctx, 1, 2, nil, w.topic+"-two")
	if err := records.Refused(err, kerr.InvalidReplicationFactor); err != nil {
		return err
	}
	metadata, err := w.admin.Metadata(w.ctx, w.topic)
	if err != nil {
		return err
	}
	topic := metadata.Topics[w.topic]
	return records.Check(len(topic.Partitions) == 3 && topic.ID != kadm.TopicID{}, "Metadata answered %+v", topic)
}

func (w walk) configs() error {
	value := func(name string) (string, error) {
		described, err := w.admin.DescribeTopicConfigs(w.ctx, w.topic)
		if err != nil {
			return "", err
		}
		config, err := described.On(w.topic, nil)
		if err != nil {
			return "", err
		}
		for _, entry := range config.Configs {
			if entry.Key == name {
				return entry.MaybeValue(), nil
			}
		}
		return "", records.Check(false, "%s is not among the topic's configs", name)
	}
	if got, err := value("retention.ms"); err != nil || got != "3600000" {
		return records.Check(false, "retention.ms should be 3600000, not %q (%v)", got, err)
	}
	set := "65536"
	_, err := w.admin.AlterTopicConfigs(w.ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &set}}, w.topic)
	if err != nil {
		return err
	}
	if got, err := value("max.message.bytes"); err != nil || got != set {
		return records.Check(false, "max.message.bytes should be %s, not %q (%v)", set, got, err)
	}
	large := &kgo.Record{Topic: w.topic, Value: make([]byte, 100_000)}
	return records.Refused(w.client.ProduceSync(w.ctx, large).FirstErr(), kerr.MessageTooLarge)
}

func (w walk) partitions() error {
	added, err := w.admin.CreatePartitions(w.ctx, 2, w.topic)
	if err == nil {
		err = added.Error()
	}
	if err != nil {
		return err
	}
	metadata, err := w.admin.Metadata(w.ctx, w.topic)
	if err != nil {
		return err
	}
	count := len(metadata.Topics[w.topic].Partitions)
	return records.Check(count == 5, "two partitions were added to three, and now there are %d", count)
}

func (w walk) deletingRecords() error {
	producer, err := newClient(w.bootstrap, kgo.RecordPartitioner(kgo.ManualPartitioner())) // it learns of all five at once
	if err != nil {
		return err
	}
	defer producer.Close()
	for range 20 {
		record := &kgo.Record{Topic: w.topic, Partition: 4, Value: []byte("value")}
		if err := producer.ProduceSync(w.ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	var before kadm.Offsets
	before.AddOffset(w.topic, 4, 7, -1)
	deleted, err := w.admin.DeleteRecords(w.ctx, before)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return err
	}
	starts, err := w.admin.ListStartOffsets(w.ctx, w.topic)
	if err != nil {
		return err
	}
	start, _ := starts.Lookup(w.topic, 4)
	return records.Check(start.Offset == 7, "the log should start at 7 after DeleteRecords, not at %d", start.Offset)
}

// epochs asks where the current leader epoch ends.
func (w walk) epochs() error {
	ends, err := w.admin.ListEndOffsets(w.ctx, w.topic)
	if err != nil {
		return err
	}
	end, _ := ends.Lookup(w.topic, 4)
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.ReplicaID = -1
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic = w.topic
	partition := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	partition.Partition, partition.CurrentLeaderEpoch, partition.LeaderEpoch = 4, -1, end.LeaderEpoch
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(w.ctx, w.client)
	if err != nil {
		return err
	}
	answer := response.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return err
	}
	return records.Check(answer.EndOffset == 20 && answer.LeaderEpoch == end.LeaderEpoch, "epoch %d should end at 20: %+v", end.LeaderEpoch, answer)
}

func (w walk) deletion() error {
	deleted, err := w.admin.DeleteTopics(w.ctx, w.topic)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return err
	}
	again, err := w.admin.DeleteTopics(w.ctx, w.topic)
	if err == nil {
		err = again.Error()
	}
	return records.Refused(err, kerr.UnknownTopicOrPartition)
}
