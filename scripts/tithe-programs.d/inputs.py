"""Inputs that programs are given: generated, the same every time, made once for all modes."""

import os
import random
import subprocess


def words(seed, count):
    """Made-up words, with repetitions."""
    chance = random.Random(seed)
    syllables = ["ka", "lo", "mi", "ren", "tu", "so", "va", "ne", "pi", "dor", "gu", "fen", "hal", "is", "ob"]
    known = ["".join(chance.choice(syllables) for _ in range(chance.randint(1, 4))) for _ in range(4000)]
    return [chance.choice(known) for _ in range(count)]


def text(path, seed, lines):
    """Lines of ten words and a number."""
    all_words = words(seed, lines * 10)
    with open(path, "w", encoding="ascii") as file:
        for line in range(lines):
            file.write(" ".join(all_words[line * 10 : line * 10 + 10]) + f" {line * 7919 % 100003}\n")


def tree(folder, seed, files):
    """A folder of folders of text files."""
    for number in range(files):
        inner = os.path.join(folder, f"part{number % 12:02}")
        os.makedirs(inner, exist_ok=True)
        text(os.path.join(inner, f"file{number:04}.txt"), seed + number, 20 + number * 37 % 400)


def c_source(path, seed, functions):
    """C with loops, switches, structs and calls from function to function."""
    chance = random.Random(seed)
    out = [
        "#include <stdint.h>",
        "#include <stddef.h>",
        "struct item { uint64_t key; double weight; struct item *next; };",
    ]
    for number in range(functions):
        cases = "\n".join(
            f"        case {case}: sum = sum * {chance.randrange(3, 999)} + (i ^ {chance.randrange(1 << 16)}); break;"
            for case in range(chance.randint(3, 12))
        )
        callee = f"f{chance.randrange(number)}" if number else "(uint64_t)sizeof"
        call = f"{callee}(list, count / 2, sum & 255)" if number else "(uint64_t)count"
        out.append(f"""
uint64_t f{number}(struct item *list, size_t count, uint64_t seed) {{
    uint64_t sum = seed + {number};
    double weight = 0.{chance.randrange(1, 9)};
    uint32_t table[{chance.choice([8, 16, 32])}] = {{{", ".join(str(chance.randrange(1000)) for _ in range(8))}}};
    for (size_t i = 0; i < count; i++) {{
        switch ((i + sum) % {chance.randint(4, 14)}) {{
{cases}
        default: sum ^= table[i % (sizeof table / sizeof *table)];
        }}
        for (struct item *item = list; item; item = item->next) {{
            weight = weight * item->weight + {chance.randrange(1, 50)}.5;
            if (item->key % {chance.randrange(2, 17)} == 0) sum += item->key >> {chance.randrange(1, 9)};
        }}
    }}
    return count > 4 ? sum + (uint64_t)weight + {call} : sum;
}}""")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(out) + "\n")


def cpp_source(path, depth, kinds):
    """C++ whose cost is in templates: the library's containers of many types, and a recursion over types."""
    out = [
        "#include <algorithm>",
        "#include <functional>",
        "#include <map>",
        "#include <memory>",
        "#include <string>",
        "#include <tuple>",
        "#include <unordered_map>",
        "#include <variant>",
        "#include <vector>",
        "template <int N, class... T> struct grow { using type = typename grow<N - 1, T..., std::map<int, std::tuple<T...>>*>::type; };",
        "template <class... T> struct grow<0, T...> { using type = std::tuple<T...>; };",
        "template <int N> long walk() { if constexpr (N == 0) return 1; else return N * walk<N - 1>() + walk<N / 2>(); }",
        f"long size() {{ return static_cast<long>(sizeof(grow<{depth}, int>::type)) + walk<200>(); }}",
    ]
    for number in range(kinds):
        out.append(f"""
struct k{number} {{ int value[{number % 9 + 1}]; bool operator<(const k{number} &o) const {{ return value[0] < o.value[0]; }} }};
std::variant<k{number}, std::string, std::vector<k{number}>> v{number}(int n) {{
    std::map<k{number}, std::vector<std::string>> m;
    std::unordered_map<std::string, std::shared_ptr<k{number}>> u;
    for (int i = 0; i < n; i++) {{
        m[k{number}{{{{i % 7}}}}].push_back(std::to_string(i));
        u[std::to_string(i * {number + 1})] = std::make_shared<k{number}>(k{number}{{{{i}}}});
    }}
    std::vector<k{number}> all;
    for (auto &[key, list] : m) if (list.size() > 2) all.push_back(key);
    std::sort(all.begin(), all.end());
    if (u.size() % 2) return all;
    return m.empty() ? std::variant<k{number}, std::string, std::vector<k{number}>>(k{number}{{}}) : m.begin()->second.front();
}}""")
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(out) + "\n")


def repository(path, seed, commits):
    """A bare git repository with two branches and merges, of one fixed history."""
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", path], check=True)
    chance = random.Random(seed)
    contents = {f"src/file{number}.txt": words(seed + number, 400) for number in range(40)}
    stream = []
    marks = {"main": 0, "side": 0}
    mark = 0
    for number in range(commits):
        branch = "side" if number % 5 == 3 else "main"
        name = chance.choice(sorted(contents))
        lines = contents[name]
        for _ in range(6):
            lines[chance.randrange(len(lines))] = f"changed {number} {chance.randrange(1 << 20)}"
        data = "\n".join(lines) + "\n"
        message = f"Change {name} for the {number}th time\n"
        mark += 1
        stream.append(f"commit refs/heads/{branch}\nmark :{mark}\n")
        stream.append(f"committer A Tester <tester@example.org> {1700000000 + number * 60} +0000\n")
        stream.append(f"data {len(message)}\n{message}")
        if marks[branch]:
            stream.append(f"from :{marks[branch]}\n")
        elif marks["main"]:
            stream.append(f"from :{marks['main']}\n")
        if branch == "main" and marks["side"] and number % 20 == 0:
            stream.append(f"merge :{marks['side']}\n")
        stream.append(f"M 100644 inline {name}\ndata {len(data)}\n{data}\n")
        marks[branch] = mark
    stream.append("done\n")
    subprocess.run(["git", "-C", path, "fast-import", "--quiet", "--done"], input="".join(stream).encode(), check=True)


def sql(path, seed, rows):
    """An SQL script for a database in a file."""
    chance = random.Random(seed)
    all_words = words(seed, rows * 3)
    with open(path, "w", encoding="ascii") as file:
        file.write("pragma journal_mode=wal; pragma cache_size=-4000;\n")
        file.write("create table item(id integer primary key, name text, place int, note text);\n")
        file.write("create virtual table found using fts5(note);\n")
        file.write("create table log(what text, n int);\n")
        file.write(
            "create trigger t after update on item begin insert into log values('changed', new.id); end;\nbegin;\n"
        )
        for row in range(rows):
            name, note, more = all_words[row * 3 : row * 3 + 3]
            file.write(f"insert into item values({row},'{name}',{chance.randrange(1000)},'{note} {more}');\n")
        file.write("commit;\ncreate index by_name on item(name, place);\ninsert into found select note from item;\n")
        file.write("create view v as select name, count(*) n, sum(place) s from item group by name;\n")
        file.write("update item set place = place * 7 % 1000 where id % 5 = 0;\n")
        file.write("select * from v order by n desc, name limit 40;\n")
        file.write("select count(*) from found where found match 'ka* NOT lo*';\n")
        file.write(
            "select json_group_array(json_object('n', name, 'p', place)) from (select * from item order by id limit 500);\n"
        )
        file.write(
            "with recursive c(x) as (select 1 union all select x + 1 from c where x < 200000) select sum(x * x % 7) from c;\n"
        )
        file.write(
            "select a.name, count(*) from item a join item b on a.name = b.name and a.place < b.place group by 1 order by 2 desc, 1 limit 20;\n"
        )
        file.write(
            "delete from item where id % 3 = 0;\nvacuum;\npragma integrity_check;\nselect count(*), sum(n) from log;\n"
        )
