// Every type that Thrift 0.17 has, to be echoed. What a method is called with is in handler.py and in main.rs alike.
include "shared.thrift"

namespace py everything

typedef list<shared.Point> Path

struct Tree {
  1: string name,
  2: list<Tree> children,
}

union Either {
  1: i32 number,
  2: string text,
  3: shared.Point point,
}

struct Whole {
  1: bool yes,
  2: bool no,
  3: byte small,
  4: i16 short,
  5: i32 middle,
  6: i64 large,
  7: double real,
  8: string text,
  9: binary raw,
  10: shared.Colour colour = shared.Colour.GREEN,
  11: Path path,
  12: Either either,
  13: set<i32> numbers,
  14: map<string, list<map<i32, bool>>> nested,
  15: shared.Cents price = shared.PRICE,
  // Far apart, which the compact protocol writes in another way.
  300: optional i32 far,
  301: optional string left_out,
}

exception Refused {
  1: string why,
  2: i32 code,
}

exception Busy {
  1: i64 seconds,
}

service Everything extends shared.Health {
  void nothing(),
  bool echo_true(1: bool v),
  bool echo_false(1: bool v),
  byte echo_byte(1: byte v),
  i16 echo_i16(1: i16 v),
  i32 echo_i32(1: i32 v),
  i64 echo_i64(1: i64 v),
  double echo_double(1: double v),
  string echo_string(1: string v),
  binary echo_binary(1: binary v),
  shared.Colour echo_enum(1: shared.Colour v),
  shared.Cents echo_typedef(1: shared.Cents v),
  shared.Point echo_struct(1: shared.Point v),
  Tree echo_tree(1: Tree v),
  Either echo_union(1: Either v),
  list<i32> echo_list(1: list<i32> v),
  list<bool> echo_bools(1: list<bool> v),
  Path echo_path(1: Path v),
  set<string> echo_set(1: set<string> v),
  map<string, i32> echo_map(1: map<string, i32> v),
  map<shared.Colour, list<map<string, bool>>> echo_nested(1: map<shared.Colour, list<map<string, bool>>> v),
  map<i32, string> echo_empty(1: map<i32, string> v),
  Whole echo_whole(1: Whole v),
  i32 echo_default(1: i32 v = 42),
  i32 add(1: i32 a, 2: i16 b, 30: i64 c),
  i32 refuse(1: bool busy) throws (1: Refused refused, 5: Busy busy),
  i32 crash(),
  binary bytes(1: i32 length),
  oneway void tell(1: i32 v),
  i32 told(),
}
