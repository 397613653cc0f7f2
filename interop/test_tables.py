"""Tables as Python's csv module reads them: the texts and records of `embed` are its fields, and so are
the records of `convert --records`."""

import csv
import io
import json
import random

import numpy as np

from common import Case, expanded, for_each

# What stands in a file, by name; the first row has the names of the columns.
TABLES = {
    "plain": "id,text\n1,a truck\n2,a lorry\n",
    "no line break at the end": "id,text\n1,a truck\n2,a lorry",
    "CRLF": "id,text\r\n1,a truck\r\n2,a lorry\r\n",
    "mixed line ends": "id,text\r\n1,a truck\n2,a lorry\r\n",
    "CR alone": "id,text\r1,a truck\r2,a lorry\r",
    "byte order mark": "\ufeffid,text\n1,a truck\n",
    "byte order mark and quotes": '\ufeff"id","text"\n1,"a truck"\n',
    "delimiter in quotes": 'id,text\n1,"a, b, and c"\n2,","\n',
    "doubled quotes": 'id,text\n1,"say ""hello"""\n2,""""\n3,""""""\n',
    "line breaks in quotes": 'id,text\n1,"a\nb"\n2,"\n"\n3,"\n\n\n"\n',
    "CRLF in quotes": 'id,text\r\n1,"a\r\nb"\r\n2,"\r\n"\r\n',
    "CR in quotes": 'id,text\n1,"a\rb"\n',
    "quotes around everything": '"id","text"\n"1","a"\n"2","b"\n',
    "empty fields": "id,text,tag\n1,,x\n2,a,\n,,\n,b,\n",
    "empty quoted fields": 'id,text,tag\n1,"",x\n"","",""\n',
    "blank lines between": "id,text\n\n1,a\n\n\n2,b\n\n",
    "blank lines at the beginning": "\n\nid,text\n1,a\n",
    "spaces stay": "id, text ,tag\n 1 ,  a  , x\n",
    "tabs stay": "id,text\n1,\ta\tb\t\n",
    "quote within a field": 'id,text\n1,5" disk\n2,a"b"c\n',
    "quote at the end of a field": 'id,text\n1,5"\n2,""\n',
    "text behind a closing quote": 'id,text\n1,"a"b\n2,"a" b\n3,"a"""b\n',
    "space before a quote": 'id,text\n1, "a"\n',
    "single quotes are letters": "id,text\n1,'a'\n2,it's\n",
    "backslashes are letters": 'id,text\n1,a\\b\n2,"a\\"\n3,\\N\n4,\\n\n',
    "unicode": "id,text\n1,東京 é ñ\n2,🚚🛻\n3,e\u0301\n",
    "unicode names": "número,テキスト\n1,a\n",
    "unicode line separators": "id,text\n1,a\u2028b\u2029c\u0085d\n",
    "no-break spaces": "id,text\n1,a\u00a0b\u3000c\n",
    "controls": "id,text\n1,a\x07b\x1b[0m\n2,\x0b\x0c\n",
    "semicolons": "id;text\n1;a, b\n2;\"c; d\"\n",
    "tabs between": "id\ttext\n1\ta, b\n2\t\"c\td\"\n",
    "bars": "id|text\n1|a, b; c\n2|\"d | e\"\n",
    "one column": "text\na\nb\n",
    "one column with quotes": 'text\n"a, b"\n""\n"c\nd"\n',
    "many columns": ",".join(f"c{i}" for i in range(300)) + "\n" + ",".join("x" * 300) + "\n",
    "a long field": 'id,text\n1,"' + "word, " * 20_000 + '"\n2,b\n',
    "JSON in a field": 'id,text\n1,"{""a"": [1, 2]}"\n',
    "formulas are texts": "id,text\n1,=1+1\n2,@x\n3,-5\n4,+5\n",
    "comments are texts": "id,text\n#1,# not a comment\n",
    "numbers keep their zeros": "id,text\n007,1.50\n1e5,0x10\n",
    "names with delimiters": 'id,"text, long"\n1,a\n',
    "names with line breaks": 'id,"te\nxt"\n1,a\n',
}


def parsed(text):
    """The names and rows that Python finds, with the delimiter that the first line tells."""
    text = text.removeprefix("\ufeff")
    first = text.lstrip("\r\n").splitlines()[0]
    delimiter = next((d for d in ",;\t|" if d in first), ",")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    return rows[0], rows[1:]


def generated(seed):
    """A table of odd fields, as Python writes it."""
    rng = random.Random(seed)
    pieces = ['"', '""', ",", ";", "\n", "\r\n", " ", "\t", "a", "truck", "é", "東", "🚚", "'", "\\", "|", ""]
    columns = rng.randint(1, 5)
    out = io.StringIO(newline="")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    delimiter = rng.choice(",;\t|")
    ends = rng.choice(["\n", "\r\n"])
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=ends)
    header = [f"c{i}" for i in range(columns)]
    rows = [
        ["".join(rng.choices(pieces, k=rng.randint(0, 6))) for _ in header]
        for _ in range(rng.randint(1, 30))
    ]
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue(), header, rows, delimiter


class TableCase(Case):
    def setUp(self):
        super().setUp()
        self.run_program("quickstart", self.path("samples"), "--offline")
        self.model = self.path("samples") / "hf-model"

    def check(self, text, header, rows, column, *options):
        """Texts and records are the fields."""
        path = self.path("table.csv")
        path.write_bytes(text.encode())
        done = self.run_program(
            "embed", "-m", self.model, "-i", path, "--column", column, "--to", "jsonl", *options
        )
        found = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
        for line in found:
            self.assertEqual(len(line.pop("vector")), 32)
        expected = [dict(zip(header, row)) for row in rows]
        self.assertEqual(found, expected)
        self.assertEqual([list(line) for line in found], [header] * len(rows))

    def check_records(self, text, rows, header):
        """So are records that are attached to rows."""
        path = self.path("ids.csv")
        path.write_bytes(text.encode())
        vectors = self.path("vectors.npy")
        np.save(vectors, np.eye(max(len(rows), 2), dtype="<f4")[: len(rows)])
        target = self.convert(vectors, "out/rows.f32bin", "--records", path)
        meta = json.loads((target.parent / "meta.json").read_bytes())
        self.assertEqual(meta["records"], [dict(zip(header, row)) for row in rows])


@expanded
class Tables(TableCase):
    @for_each(TABLES)
    def test_as_python_reads_it(self, name):
        header, rows = parsed(TABLES[name])
        self.assertTrue(rows)
        self.check(TABLES[name], header, rows, header[-1])
        self.check(TABLES[name], header, rows, header[0])
        self.check_records(TABLES[name], rows, header)

    @for_each(range(40))
    def test_as_python_writes_it(self, seed):
        text, header, rows, delimiter = generated(seed)
        # A single blank field is written as a pair of quotes, and so is a row.
        self.check(text, header, rows, header[-1], "--delimiter", delimiter)

    def test_vectors_are_those_of_the_texts(self):
        path = self.path("table.csv")
        path.write_text('id,text\n1,"a truck, ""full"""\n2,"two\nlines"\n')
        found = self.run_program("embed", "-m", self.model, "-i", path, "--to", "jsonl")
        texts = ['a truck, "full"', "two\nlines"]
        given = self.run_program("embed", "-m", self.model, "--to", "jsonl", *texts)
        vectors = [[json.loads(l)["vector"] for l in done.stdout.splitlines()] for done in (found, given)]
        self.assertEqual(*vectors)

    @for_each(["\n1,a\n2\n", '\n1,"a\n', "\n1,a,b\n"])
    def test_what_is_no_table_is_an_error(self, rows):
        path = self.path("bad.csv")
        path.write_text("id,text" + rows)
        self.refused("embed", "-m", self.model, "-i", path, code=3, saying=["expected", "found", "line "])
