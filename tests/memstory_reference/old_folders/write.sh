#!/bin/sh
# Writes what test_old_folders.py opens, by the commands of commit ce761bf: `write.sh FOLDER [POSTGRES_URL]` with the
# programs of a checkout of that commit first on the path. A URL that has parameters already, such as ?host=…, is needed,
# and pg_dump on the path; without a URL, all but the two memories in Postgres are written.
set -eu
cd "$1"
url=${2:-}
zoe=zoë
: >talks.log; : >refused.log

talk() { memstory-reference chat --embedder all-MiniLM-L6-v2 "$@" >>talks.log || echo "chat $*" >>refused.log; }
memory() { memstory-reference memory "$@" >>talks.log; }
id_of() { # id_of TEXT < JSON lines or an array: the id of the first whose line has the text
  python -c 'import json,sys
raw = sys.stdin.read()
rows = json.loads(raw) if raw.startswith("[") else [json.loads(line) for line in raw.splitlines()]
rows = [row for row in rows if sys.argv[1] in json.dumps(row, ensure_ascii=False)]
print(rows[0].get("id") or rows[0]["memory_id"])' "$1"
}

settings_of() { python -c 'import memstory_reference.systems.topics as t; print(t.__path__[0])' | sed 's,$,/memory.yaml,'; }

topics() { # topics NAME STORE...
  name=$1; shift
  printf '%s\n' 'My name is Zoë Müller and I live in Kraków.' 'Please remember my preferred language is Elixir.' \
    'The deploy broke on Tuesday because of a full disk.' '/good' '/new' 'Please remember my preferred language is Rust.' \
    'The cat 小虎 sleeps on the piano.' 'The gate code is 4471 B.' | talk "$@" --owner $zoe
  printf '%s\n' 'My name is Bob and I live in Oslo.' 'The train to Bergen leaves at nine.' | talk "$@" --owner bob
  gone=$(memstory-reference memory list "$@" --owner $zoe --json | id_of 'The gate code')
  memory forget "$@" --owner $zoe "$gone" --yes
  for one in $zoe bob; do memory export "$@" --owner $one --output "$name.$one.jsonl"; done
}

manager() {
  printf '%s\n' 'My name is Zoë Müller and I live in Kraków.' 'My cat is called 小虎.' 'My preferred language is Elixir.' \
    '/new' 'My preferred language is Rust.' 'My gate code is 4471 B.' | talk --system manager --store manager --owner $zoe
  printf '%s\n' 'My name is Bob and I live in Oslo.' | talk --system manager --store manager --owner bob
  gone=$(memstory-reference memory list --system manager --store manager --owner $zoe --json | id_of 'gate code')
  memory forget --system manager --store manager --owner $zoe "$gone" --yes
  for one in $zoe bob; do memory export --system manager --store manager --owner $one --output manager.$one.jsonl; done
}

pipeline() {
  printf '%s\n' 'My name is Zoë Müller and I live in Kraków.' 'I prefer tabs over spaces.' \
    'We decided to use Postgres for project Ångström on 2 May.' '/new' 'I prefer spaces over tabs.' \
    'My cat is called 小虎 and my gate code is 4471 B.' | talk --system pipeline --store pipeline --owner $zoe
  printf '%s\n' 'My name is Bob and I live in Oslo.' | talk --system pipeline --store pipeline --owner bob
  gone=$(memstory-reference memory list --system pipeline --store pipeline --owner $zoe --json | id_of 'gate code')
  memory forget --system pipeline --store pipeline --owner $zoe "$gone" --yes
  for one in $zoe bob; do memory export --system pipeline --store pipeline --owner $one --output pipeline.$one.jsonl; done
}

observations() {
  run() { memstory-reference observations store --store observations --embedder all-MiniLM-L6-v2 --owner $2 --run-id "$1" \
    --output - --score 8 "$3" >>talks.log; }
  printf 'Costs fell by 38%% after prompts were cached in Zürich.\nBatches of 20 were cheapest.\n' | run run-1 $zoe 'Control LLM costs'
  printf 'The café on the Łódź route opens at 7.\nIts menu lists 12 dishes.\n' | run run-2 $zoe 'Find cafés near Łódź'
  printf 'The gate code 4471 B opens 2 doors.\nThe third door has 1 key.\n' | run run-3 $zoe 'List the doors'
  printf '小虎 weighs 4 kg.\nIt sleeps 16 hours.\n' | run run-4 $zoe '小虎 的 体重'
  printf 'Trains to Bergen leave at 9.\nThe trip takes 7 hours.\n' | run run-5 bob 'Plan the trip to Bergen'
  memstory-reference observations rate --store observations --owner $zoe run-1 2 >>talks.log
  memstory-reference observations forget --store observations --owner $zoe run-3 >>talks.log
  for one in $zoe bob; do memstory-reference observations list --store observations --owner $one --json >observations.$one.json; done
}

layers() { # layers NAME STORE
  printf '%s\n' 'My name is Zoë Müller and I live in Kraków.' 'I prefer tea, and my cat is called 小虎.' '/feedback helpful très bien' \
    'I live in Kraków and I work as a nurse.' '/end' 'I moved to Łódź.' 'I want to kill myself.' '/feedback unhelpful' '/end' \
    'I like chess.' '/end' | talk --system layers --store "$2" --user-id $zoe --thread-id t1
  # A session that is still open: the program is killed.
  { printf '%s\n' 'My brother is called Łukasz.' 'I am learning to play the oboe.'; sleep 60; } |
    timeout -s KILL 40 memstory-reference chat --system layers --store "$2" --user-id $zoe --thread-id t3 >>talks.log || true
  printf '%s\n' 'My name is Bob and I live in Oslo.' '/recall off' | talk --system layers --store "$2" --user-id bob --thread-id t2
  gone=$(memstory-reference memory list --system layers --store "$2" --user-id $zoe --json | id_of 'chess')
  memory forget --system layers --store "$2" --user-id $zoe "$gone" --yes
  aside=$(memstory-reference memory list --system layers --store "$2" --user-id $zoe --json | id_of 'nurse')
  memory archive --system layers --store "$2" --user-id $zoe "$aside"
  for one in $zoe bob; do memory export --system layers --store "$2" --user-id $one --output "$1.$one.json"; done
}

turns() { # turns NAME STORE
  cat >turns.given <<'J'
{"text": "I moved to Łódź in May.", "session": "s1", "kind": "turn", "key": "k1", "said_at": "2026-05-04T09:00:00Z", "metadata": {"from": "import"}}
{"text": "The café by the river opens at seven.", "session": "s1"}
J
  printf '%s\n' 'My name is Zoë Müller and I live in Kraków.' 'My cat is called 小虎.' '/new' 'My gate code is 4471 B.' \
    | talk --system turns --store "$2" --owner $zoe
  memory import --system turns --store "$2" --owner $zoe turns.given
  printf '%s\n' 'My name is Bob and I live in Oslo.' | talk --system turns --store "$2" --owner bob
  memstory-reference memory list --system turns --store "$2" --owner $zoe --json | python -c 'import json,sys
raw = sys.stdin.read()
for row in json.loads(raw):
    if "4471" in row["text"]: print(row["id"])' >gone
  memory forget --system turns --store "$2" --owner $zoe $(cat gone) --yes
  for one in $zoe bob; do memory export --system turns --store "$2" --owner $one --output "$1.$one.jsonl"; done
}

server() {
  chroma run --path topics-server --host 127.0.0.1 --port 8765 >server.log 2>&1 & started=$!
  sed 's/^chroma_server:.*/chroma_server: "127.0.0.1:8765"/' "$(settings_of)" >server.yaml
  until python -c 'import socket; socket.create_connection(("127.0.0.1", 8765))' 2>>server.log; do sleep 1; done
  topics topics-server --settings server.yaml
  kill $started; wait $started || true
}

if [ -z "$url" ]; then
  topics topics --store topics
  sed 's/^exact_rows:.*/exact_rows: 0/' "$(settings_of)" >indexed.yaml
  topics topics-indexed --store topics-indexed --settings indexed.yaml
  memory search --store topics-indexed --settings indexed.yaml --owner $zoe 'the deploy'
  server; manager; pipeline; observations; layers layers layers; turns turns turns
  for one in topics topics-indexed topics-server manager pipeline observations layers turns; do
    tar -cf - "$one" "$one".*json* | gzip -9n >"$one.tar.gz"
  done
else
  layers layers-postgres "$url&schema=layers"; turns turns-postgres "$url&schema=turns"
  for one in layers turns; do
    mkdir $one-postgres
    pg_dump --inserts --no-owner --no-privileges --schema="$one*" "$url" | grep -v '^\\\|^SET transaction_timeout' >$one-postgres/dump.sql
    tar -cf - $one-postgres $one-postgres.*json* | gzip -9n >"$one-postgres.tar.gz"
  done
fi
