"""Whatever is wrong with a connector's file, or with what it names, `check` tells in one sentence with cause and remedy."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest
import sqlalchemy as sa
from deltalake import write_deltalake
from sqlalchemy.pool import NullPool

from headrace.cli.commands.connect_run import problems_of
from headrace.connectors import ConnectorError
from headrace.connectors.config import declare
from headrace.connectors.state import State

NOBODY = "127.0.0.1:1"

SETTINGS = {
    "files source": [
        ("path = 7", "source.path is 7: it must be a text"),
        ('path = ""', "source.path is '': it must not be empty"),
        (r'path = "a\u0000b"', "source.path is 'a\\x00b': it must not hold the character NUL"),
        ('path = "/none/x"', "source.path is '/none/x', but there is no directory /none"),
        ('path = "."\nmax_bytes = "big"', "source.max_bytes is 'big': it must be a whole number"),
        ('path = "."\nmax_bytes = 1.5', "source.max_bytes is 1.5: it must be a whole number"),
        ('path = "."\nmax_bytes = 0', "source.max_bytes is 0: it must be at least 1"),
        ('path = "."\nmax_bytes = 99999999999999999999', "it must be a number of an ordinary size"),
        ('path = "."\nline_timeout = -1', "source.line_timeout is -1: it must be at least 0"),
        ('path = "."\nline_timeout = nan', "source.line_timeout is nan: it must be a number of an ordinary"),
        ('path = "."\nline_timeout = "soon"', "it must be a duration such as"),
        ('path = "."\nheader = "yes"', "source.header is 'yes': it must be true or false"),
        ('path = "."\ncolumns = [1]', "source.columns is [1]: it must be a text or a list of texts"),
        ('path = "."\ntypes = "int"', "source.types is 'int': it must be a table of names and values"),
        ('path = "."\ntypes = {id = ["int"]}', "its values must be texts, numbers, true or false"),
        ('path = "."\ntypes = {id = "number"}', "source.types.id is 'number': choose int, float, text, bool"),
        ('path = "."\ndelimiter = "\\n"', "it must be one character, and no quote or line end"),
    ],
    "files sink": [
        ('path = "a.toml/x"', "a.toml is not a directory): check that it is a directory"),
        ('path = "foo://x"', "the path foo://x cannot be used: Unrecognized filesystem"),
        ('path = "out"\nformat = "xml"', "sink.format is 'xml': choose json, csv, text or parquet"),
        (
            'path = "out"\nformat = "csv"',
            "CSV has no place for the nested field tags: use json or parquet",
            "id BIGINT, tags ARRAY<STRING>",
        ),
    ],
    "lake source": [
        ('path = "none"', "source.path is 'none/', but there is no directory none"),
        ('path = "s3://b/x"', "Parquet files are read from a directory, and from a URI only as Delta"),
        ('path = "none"\nformat = "delta"', "source.path is none, where there is no Delta table"),
        ('path = "broken"\nformat = "delta"', "source.path is broken, whose Delta table cannot be read"),
    ],
    "lake sink": [
        ('path = "a.toml/x"', "a.toml is not a directory): check that it is a directory"),
        ('path = "out"\ntime_field = "at"', "which must be a TIMESTAMP or DATE in topic.schema"),
        (
            'path = "out"\npartition = "none"\ntime_field = "id"',
            'time_field is given, but partition is "none"',
        ),
        ('path = "out"', "topic.schema has the field date, which is the name of a partition", "date STRING"),
        (
            'path = "texts"\nformat = "delta"\npartition = "none"',
            "has string in the column id, and topic.sch",
        ),
        (
            'path = "texts"\nformat = "delta"\npartition = "none"',
            "the Delta table texts has no column nr: it has id",
            "nr BIGINT",
        ),
        ('path = "texts"\nformat = "delta"', "is partitioned by nothing, and sink.partition asks for date"),
        ('path = "broken"\nformat = "delta"', "the Delta table broken cannot be used"),
    ],
    "http-poll source": [
        ('url = "ftp://x"', "source.url is 'ftp://x': it must begin with http:// or https://"),
        ('url = "http://"', "source.url is 'http://': it names no host"),
        ('url = "http://h:x/"', "source.url is 'http://h:x/', which is no URL"),
        ('url = "http://{nobody}/"', "does not answer: "),
        ('url = "{web}"\nheaders = {"a b" = "1"}', "source.headers has 'a b', which is no header's name"),
        ('url = "{web}"\nheaders = {a = "1\\n2"}', "source.headers.a holds a line end or a character"),
        ('url = "{web}/text"', "did not answer with JSON"),
        ('url = "{web}/none"', "answered 404: check source.url and source.headers"),
        ('url = "{web}/ids"\nrecords = "no"', "has no JSON objects at source.records (no)"),
        ('url = "{web}/ids"\ncursor_field = "id"', "cursor_field and cursor_param belong together"),
        (
            'url = "{web}/ids"\ncursor_field = "id"\ncursor_param = "a"\ncursor_start = "soon"',
            "source.cursor_start is 'soon', but source.cursor_field has numbers: give it a number",
        ),
        (
            'url = "{web}/ids"\ncursor_field = "nr"\ncursor_param = "a"',
            "a record has no number or text in nr, which is source.cursor_field",
        ),
        ('url = "{web}/ids"\ntimeout = 0', "source.timeout is 0: it must be at least 0.1"),
    ],
    "webhook sink": [
        ('url = "x"', "sink.url is 'x': it must begin with http:// or https://"),
        ('url = "http://{nobody}/"', "127.0.0.1:1 does not answer: "),
        ('url = "{web}"\nbatch = 0', "sink.batch is 0: it must be at least 1"),
        ('url = "{web}"\nheaders = {a = "\\u20ac"}', "sink.headers.a holds a line end or a character"),
        ('url = "{web}"\ncontent_type = "a\\nb"', "write a media type, such as application/json"),
    ],
    "http-endpoint source": [
        ('listen = "8080"', "source.listen is '8080': it must be host:port, such as 127.0.0.1:8080"),
        ('certificate = "c.pem"', "certificate and private_key belong together: give both or none"),
        ('certificate = "none.pem"\nprivate_key = "k.pem"', "source.private_key cannot be used ([Errno 2]"),
        ('certificate = "a.toml"\nprivate_key = "a.toml"', "source.private_key cannot be used ("),
        ("max_body = -1", "source.max_body is -1: it must be at least 1"),
    ],
    "redis source": [
        ('url = "localhost"\nstream = "e"', "source.url is not a Redis URL"),
        ('url = "redis://h:x/0"\nstream = "e"', "source.url is not a Redis URL (Port could not be cast"),
        ('url = "redis://h/0?foo=1"\nstream = "e"', "source.url is not a Redis URL ("),
        ('url = "redis://{nobody}/0"\nstream = "e"', "Redis at 127.0.0.1:1/0 does not answer: "),
        ('url = "{redis}&password=wrong"\nstream = "e"', "refused the login ("),
        ('url = "{redis}"\nstream = "text"', "source.stream is 'text', which is a string and not a stream"),
    ],
    "redis sink": [
        ('url = "{redis}"\nkey = "order:{id"', "which cannot be read (expected '}' before end of string)"),
        ('url = "{redis}"\nkey = "order:{id:d}"', "in brackets stands a field's name and nothing else"),
        ('url = "{redis}"\nkey = "order:{nr}"', "but there is no field nr: there are id"),
        ('url = "{redis}"\nkey = "k"\nttl = "1 day"', "sink.ttl is '1 day': it must be a whole number"),
        ('url = "{redis}&password=wrong"\nkey = "k"', "refused the login ("),
    ],
    "sql source": [
        ('url = "x"\ntable = "t"\ncolumn = "id"', "source.url is not a database URL: write it as"),
        ('url = "mysql+pymysql://h:x/d"\ntable = "t"\ncolumn = "id"', "source.url is not a database URL"),
        (
            'url = "mysql+none://h/d"\ntable = "t"\ncolumn = "id"',
            "needs a database driver that is not installed",
        ),
        ('url = "mysql+pymysql://{nobody}/d"\ntable = "t"\ncolumn = "id"', "does not answer: "),
        ('url = "{database}&foo=1"\ntable = "orders"\ncolumn = "id"', "unexpected keyword argument 'foo'"),
        ('url = "{elsewhere}"\ntable = "t"\ncolumn = "id"', "Unknown database"),
        ('url = "{database}"\ntable = "order"\ncolumn = "id"', "not in the database; did you mean orders?"),
        ('url = "{database}"\ntable = "orders"\ncolumn = "nr"', "but the table orders has id, name"),
        (
            'url = "{database}"\ntable = "orders"\ncolumn = "id"\ncolumns = "nr"',
            "source.columns is 'nr', but",
        ),
        ('url = "{database}"\ntable = "orders"\ncolumn = "id"\nwhere = "nr = 1"', "Unknown column 'nr'"),
        (
            'url = "{database}"\ntable = "blobs"\ncolumn = "data"',
            "of the type bytes, which cannot be followed",
        ),
        ('url = "{database}"\ntable = "orders"\ncolumn = "id"\nsettle = "-1s"', "it must be a duration such"),
    ],
    "sql sink": [
        ('url = "sqlite:////none/x.db"\ntable = "t"\nkey = "id"', "unable to open database file"),
        ('url = "{database}"\ntable = "order"\nkey = "id"', "not in the database; did you mean orders?"),
        (
            'url = "{database}"\ntable = "orders"\nkey = "nr"',
            "sink.key names nr, but the table orders has only",
        ),
        ('url = "{database}"\ntable = "orders"\nkey = "name"', "has no primary or unique key of just that"),
        (
            'url = "{database}"\ntable = "orders"\nkey = "id"',
            "topic.schema names nr, but the table orders has only id, name",
            "id BIGINT, nr BIGINT",
        ),
        ('url = "{database}"\ntable = "orders"', 'sink.key is missing: mode = "upsert" needs'),
    ],
}
CASES = [
    pytest.param(kind, text, sentence, *(more or ("id BIGINT",)), id=f"{kind}: {text!r}")
    for kind, cases in SETTINGS.items()
    for text, sentence, *more in cases
]


class Api(BaseHTTPRequestHandler):
    def do_GET(self):
        known = {"/text": b"hello", "/ids": b'[{"id": 1}]'}
        path = self.path.partition("?")[0]
        self.send_response(200 if path in known else 404)
        self.end_headers()
        self.wfile.write(known.get(path, b""))

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def web():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def database(mariadb):
    url = mariadb.new_database()
    engine = sa.create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (id BIGINT PRIMARY KEY, name TEXT)"))
        connection.execute(sa.text("INSERT INTO orders VALUES (1, 'a')"))
        connection.execute(sa.text("CREATE TABLE blobs (data BLOB)"))
        connection.execute(sa.text("INSERT INTO blobs VALUES ('x')"))
    return url


@pytest.fixture
def named(request, tmp_path, monkeypatch):
    """A directory with what the files name, and a way to say where the servers are."""
    monkeypatch.chdir(tmp_path)

    def fill(text):
        places = {"nobody": NOBODY}
        if "{web}" in text:
            places["web"] = request.getfixturevalue("web")
        if "{database}" in text:
            places["database"] = request.getfixturevalue("database")
        if "{elsewhere}" in text:
            places["elsewhere"] = request.getfixturevalue("mariadb").url("nowhere")
        if "{redis}" in text:
            server = request.getfixturevalue("redis_server")
            client = server.client()
            client.set("text", "x")
            if "password" in text:
                client.config_set("requirepass", "secret")
            places["redis"] = f"unix://{server.socket}?db=0"
        for name, place in places.items():
            text = text.replace(f"{{{name}}}", place)
        if "texts" in text:
            write_deltalake("texts", pa.table({"id": ["a"]}))
        if "broken" in text:
            write_deltalake("broken", pa.table({"id": ["a"]}))
            (tmp_path / "broken" / "_delta_log" / f"{0:020d}.json").write_text("{nonsense")
        return text

    return fill


@pytest.mark.parametrize(("kind", "text", "sentence", "schema"), CASES)
def test_a_mistake_is_one_sentence(kind, text, sentence, schema, named, bootstrap, new_topic, tmp_path):
    name, side = kind.split()
    fields = f'schema = "{schema}"\n' if side == "sink" else ""
    file = tmp_path / "a.toml"
    file.write_text(f'[topic]\nname = "{new_topic()}"\n{fields}[{side}]\ntype = "{name}"\n{named(text)}\n')
    (told,) = problems_of(file, bootstrap, offline=False)
    assert sentence in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [
        ("name = []", "topic.name is []: it must name at least one"),
        ('name = "a b"', "topic.name is 'a b': a topic's name has letters, digits"),
        (
            f'name = "orders"\nbootstrap = "{NOBODY}"',
            f"No broker answers at {NOBODY} (connection refused); start one with 'headrace up --listen {NOBODY}', or name a "
            "running one with topic.bootstrap (or -b)",
        ),
        ('name = "orders"\nclient = {"security.protocol" = "SLS"}', "security.protocol"),
        ('name = "orders"\nmax_records = "all"', "topic.max_records is 'all': it must be a whole number"),
        ('name = "orders"\nrecreated = "ignore"', "topic.recreated is 'ignore': choose read or fail"),
        ('name = "orders"\n[run]\nevery = inf', "run.every is inf: it must be a number of an ordinary size"),
        ('name = "orders"\n[run]\nretry_for = "-5 s"', "run.retry_for is '-5 s': it must be a duration"),
    ],
)
def test_a_mistake_about_the_topic_is_one_sentence(topic, sentence, tmp_path, bootstrap):
    file = tmp_path / "a.toml"
    file.write_text(f'[sink]\ntype = "files"\npath = "{tmp_path}/out"\n[topic]\n{topic}\n')
    (told,) = problems_of(file, bootstrap, offline=False)
    assert sentence in told
    assert "\n" not in told


def test_a_run_without_a_cluster_says_so_with_its_exit_code(connect, tmp_path):
    (tmp_path / "a.toml").write_text(
        f'[sink]\ntype = "files"\npath = "out"\n[topic]\nname = "orders"\nbootstrap = "{NOBODY}"\n'
    )
    told = connect("run", "a.toml", code=3)
    assert told.count(f"No broker answers at {NOBODY}") == 1


def test_what_somebodys_own_connector_raises_is_one_sentence(tmp_path, bootstrap):
    (tmp_path / "careless.py").write_text(
        "from dataclasses import dataclass\n"
        "from headrace.connectors import Sink\n"
        "@dataclass(frozen=True)\nclass Nothing: pass\n"
        "class Careless(Sink):\n"
        "    delivery, summary, Settings = 'at least once', 'Careless.', Nothing\n"
        "    def check(self): return {}['table']\n"
        "    def write(self, chunk): pass\n"
    )
    file = tmp_path / "a.toml"
    file.write_text('[topic]\nname = "orders"\n[sink]\ntype = "careless:Careless"\n')
    assert problems_of(file, bootstrap, offline=False) == ["a cannot run: KeyError: 'table'"]


def test_an_endpoint_that_cannot_start_says_why(bootstrap):
    document = {
        "topic": {"name": "orders", "bootstrap": bootstrap, "client": {"no.such.setting": "1"}},
        "source": {"type": "http-endpoint", "listen": "127.0.0.1:0"},
    }
    declared = declare(document, default_name="gate")
    running = declared.connector.start(declared.topic)
    running.stop()
    assert not running.is_active()
    assert str(running.failure()).startswith("gate could not start: ")
    assert "no.such.setting" in str(running.failure())


def test_a_state_that_cannot_be_kept_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConnectorError, match=r"cannot be used for the state of c: .*name another directory"):
        State(tmp_path / "file", "c").lock()
    state = State(tmp_path / "state", "c")
    state.lock()
    (state.home / "identity.json").write_text("{")
    with pytest.raises(
        ConnectorError, match=r"identity.json is damaged or cannot be read .*start afresh with --reset"
    ):
        state.keep_identity({})
    state.release()
