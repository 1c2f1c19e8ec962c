"""Sinks that come to a bad end once: after the target has the rows and before Spark knows."""

import os
import signal
from dataclasses import dataclass

from headrace.connectors import setting
from headrace.connectors.lake.sink import LakeSink, LakeSinkSettings
from headrace.connectors.redis.sink import RedisSink, RedisSinkSettings
from headrace.connectors.sql.sink import SqlSink, SqlSinkSettings


def first_time(marker):
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class KilledInTask:
    """The worker that wrote is killed."""

    def finish(self):
        made = super().finish()
        if first_time(self.settings.marker):
            os.kill(os.getpid(), signal.SIGKILL)
        return made


class FailedOnDriver:
    """The driver fails after its commit."""

    def commit(self, batch, written):
        super().commit(batch, written)
        if batch == 1 and first_time(self.settings.marker):
            raise OSError("the machine went away")


@dataclass(frozen=True)
class Marked:
    marker: str = setting("A file that says that it has happened.")


@dataclass(frozen=True)
class LakeSettings(LakeSinkSettings, Marked):
    pass


@dataclass(frozen=True)
class RedisSettings(RedisSinkSettings, Marked):
    pass


@dataclass(frozen=True)
class SqlSettings(SqlSinkSettings, Marked):
    pass


class FailedLake(FailedOnDriver, LakeSink):
    Settings = LakeSettings


class KilledRedis(KilledInTask, RedisSink):
    Settings = RedisSettings


class KilledSql(KilledInTask, SqlSink):
    Settings = SqlSettings
