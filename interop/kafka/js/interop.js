// node interop.js COMMAND BOOTSTRAP …: kafkajs against any broker; records in and out as JSON lines, offsets, admin calls.
"use strict";

const assert = require("node:assert");
const readline = require("node:readline");
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");

const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));
const text = (value) => (value === null || value === undefined ? null : Buffer.from(value).toString("base64"));

function connect(bootstrap) {
  return new Kafka({ clientId: "interop", brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } });
}

// Sends standard input's records with the idempotent producer, in one request for each partition's leader.
async function write(kafka, topic, compression) {
  const messages = [];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const record = JSON.parse(line);
    const headers = {};
    for (const [key, value] of record.headers) headers[key] = key in headers ? [headers[key], bytes(value)] : bytes(value);
    messages.push({
      partition: record.partition,
      key: bytes(record.key),
      value: bytes(record.value),
      headers,
      timestamp: String(record.timestamp),
    });
  }
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  try {
    const results = await producer.send({ topic, messages, acks: -1, compression: codecs[compression] });
    for (const { errorCode } of results) assert.strictEqual(errorCode, 0);
  } finally {
    await producer.disconnect();
  }
}

// Prints every record of the topics; kafkajs reads through a consumer group, which is deleted in the end.
async function read(kafka, ...topics) {
  const admin = kafka.admin();
  await admin.connect();
  let left = 0;
  for (const topic of topics)
    for (const { high, low } of await admin.fetchTopicOffsets(topic)) left += Number(high) - Number(low);
  const groupId = `interop-${process.pid}-${Date.now()}`;
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  await new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`${left} records were still to come after 40 s`)), 40000);
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer
      .run({
        eachMessage: async ({ topic, partition, message }) => {
          print(topic, partition, message);
          if (--left === 0) {
            clearTimeout(limit);
            resolve();
          }
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  await admin.deleteGroups([groupId]);
  await admin.disconnect();
}

function print(topic, partition, message) {
  const headers = [];
  for (const [key, values] of Object.entries(message.headers ?? {}))
    for (const value of Array.isArray(values) ? values : [values]) headers.push([key, text(value)]);
  console.log(
    JSON.stringify({
      topic,
      partition,
      offset: Number(message.offset),
      timestamp: Number(message.timestamp),
      key: text(message.key),
      value: text(message.value),
      headers,
    }),
  );
}

async function withAdmin(kafka, work) {
  const admin = kafka.admin();
  await admin.connect();
  try {
    await work(admin);
  } finally {
    await admin.disconnect();
  }
}

async function offsets(kafka, topic, which) {
  await withAdmin(kafka, async (admin) => {
    const found = {};
    const listed =
      which === "earliest" || which === "latest"
        ? await admin.fetchTopicOffsets(topic)
        : await admin.fetchTopicOffsetsByTimestamp(topic, Number(which));
    for (const entry of listed) found[entry.partition] = Number(which === "earliest" ? entry.low : entry.offset);
    console.log(JSON.stringify(found));
  });
}

// What must work works, and what must be refused is refused with Kafka's own error.
async function admin(kafka, topic) {
  await withAdmin(kafka, async (client) => {
    const { brokers, controller } = await client.describeCluster();
    assert.strictEqual(brokers.length, 1);
    assert.strictEqual(controller, brokers[0].nodeId);
    const wanted = { topics: [{ topic, numPartitions: 3, configEntries: [{ name: "retention.ms", value: "3600000" }] }] };
    assert.strictEqual(await client.createTopics(wanted), true);
    assert.strictEqual(await client.createTopics(wanted), false, "a second creation should be refused");
    assert((await client.listTopics()).includes(topic), "listTopics lacks the topic");
    const described = await client.fetchTopicMetadata({ topics: [topic] });
    assert.strictEqual(described.topics[0].partitions.length, 3);
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: ["retention.ms"] };
    const config = async () => (await client.describeConfigs({ resources: [resource] })).resources[0].configEntries;
    assert.strictEqual((await config())[0].configValue, "3600000");
    const entries = [{ name: "retention.ms", value: "7200000" }];
    await client.alterConfigs({ validateOnly: false, resources: [{ type: resource.type, name: topic, configEntries: entries }] });
    assert.strictEqual((await config())[0].configValue, "7200000");
    await client.createPartitions({ topicPartitions: [{ topic, count: 5 }] });
    const grown = await client.fetchTopicMetadata({ topics: [topic] });
    assert.strictEqual(grown.topics[0].partitions.length, 5);
    const producer = kafka.producer();
    await producer.connect();
    await producer.send({ topic, messages: Array.from({ length: 20 }, () => ({ partition: 4, value: "value" })) });
    await producer.disconnect();
    await client.deleteTopicRecords({ topic, partitions: [{ partition: 4, offset: "7" }] });
    const starts = await client.fetchTopicOffsets(topic);
    assert.strictEqual(starts.find(({ partition }) => partition === 4).low, "7");
    await client.deleteTopics({ topics: [topic] });
    await assert.rejects(client.deleteTopics({ topics: [topic] }), /does not host this topic-partition/);
  });
}

async function main() {
  const [command, bootstrap, ...rest] = process.argv.slice(2);
  const commands = { write, read, offsets, admin };
  if (!commands[command]) throw new Error("usage: node interop.js write|read|offsets|admin BOOTSTRAP …");
  await commands[command](connect(bootstrap), ...rest);
}

main().then(
  () => process.stdout.write("", () => process.exit(0)), // once everything printed has been taken
  (error) => {
    console.error(String(error?.message ?? error));
    process.exit(1);
  },
);
