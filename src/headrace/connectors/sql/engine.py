"""What SQL source and sink share: an engine, a table as the database describes it, and kinds of errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from headrace.connectors import errors
from headrace.connectors.errors import ConnectorError, Unavailable
from headrace.nearest import nearest


def connect(url: str, side: str) -> sa.Engine:
    """An engine that keeps no connections: each task makes its own and closes it."""
    try:
        return sa.create_engine(url, poolclass=NullPool)
    except (sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
        raise ConnectorError(
            f"{side}.url needs a database driver that is not installed ({error}): install it with pip, or correct the url"
        ) from None
    except (sa.exc.ArgumentError, ValueError, TypeError):
        raise ConnectorError(
            f"{side}.url is not a database URL: write it as mysql+pymysql://user:${{PASSWORD}}@host/database"
        ) from None


def reflect(engine: sa.Engine, table: str, side: str) -> sa.Table:
    schema, _, name = table.rpartition(".")
    with answering(engine):
        try:
            return sa.Table(name, sa.MetaData(), autoload_with=engine, schema=schema or None)
        except sa.exc.NoSuchTableError:
            known = sa.inspect(engine).get_table_names(schema=schema or None)
            near = nearest(name, known, cutoff=0.5)
            hint = f"; did you mean {near}?" if near else ""
            raise ConnectorError(f"{side}.table is {table!r}, which is not in the database{hint}") from None


@contextmanager
def reachable(engine: sa.Engine) -> Iterator[None]:
    """Trouble with the connection, or a transaction that lost to another, is worth another try."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if not _may_pass(error):
            raise
        raise Unavailable(f"the database {_where(engine)} does not answer: {one_line(error)}") from error
    except TypeError as error:  # an argument in the url that the driver does not have
        if "unexpected keyword argument" not in str(error) and "invalid keyword" not in str(error):
            raise
        raise ConnectorError(f"the url {_where(engine)} cannot be used: {error}") from error


@contextmanager
def answering(engine: sa.Engine) -> Iterator[None]:
    """The same where no single record is to blame: what the database refuses becomes a sentence."""
    try:
        with reachable(engine):
            yield
    except sa.exc.DBAPIError as error:
        raise ConnectorError(f"the database refused what was asked: {one_line(error)}") from error
    except sa.exc.SQLAlchemyError as error:
        raise ConnectorError(
            f"the database {_where(engine)} cannot be used: {errors.one_line(error)}"
        ) from error


def _where(engine: sa.Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


def _may_pass(error: sa.exc.DBAPIError) -> bool:
    if error.connection_invalidated or isinstance(error, sa.exc.InterfaceError):
        return True
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    if isinstance(code, int) and 1000 <= code < 2000:  # MariaDB's own refusals; the client's begin at 2000
        return code in _PASSING
    return isinstance(error, sa.exc.OperationalError)


_PASSING = frozenset({1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1203, 1205, 1213})
"""Too many connections, shutting down, the network, a lock waited for too long, a deadlock."""


def one_line(error: sa.exc.DBAPIError) -> str:
    return errors.one_line(error.orig)
