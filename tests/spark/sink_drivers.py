"""Drivers of a streaming query that kill themselves: one line of JSON in, one driver process, its exit code out.

`deadly` is the number of the request at which it dies, before it is sent or, with `sent`, right after.
"""

import json
import os
import signal
import sys

from headrace.link.blocking import Connection
from headrace.link.cluster import Cluster
from headrace.spark.settings import kafka_settings
from headrace.spark.sink_commit import BatchCommit
from headrace.spark.sink_transactions import ProducerIdentity


def drive(bootstrap, query, run, batch, timeout_ms, identities, deadly, sent):
    requests = 0
    really_send = Connection.send

    def send(connection, request, version):
        nonlocal requests
        requests += 1
        if requests == deadly and not sent:
            os.kill(os.getpid(), signal.SIGKILL)
        number = really_send(connection, request, version)
        if requests == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    Connection.send = send
    cluster = Cluster(kafka_settings({"kafka.bootstrap.servers": bootstrap}))
    transactions = [ProducerIdentity(*identity) for identity in identities]
    BatchCommit(cluster, query, run, timeout_ms).commit(batch, transactions)


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        drive(**json.loads(line))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
