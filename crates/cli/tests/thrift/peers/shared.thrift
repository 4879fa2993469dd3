// Included by everything.thrift.
namespace py shared

enum Colour {
  RED = 1,
  GREEN,
  BLUE = 0x10,
}

typedef i64 Cents

struct Point {
  1: required i32 x,
  2: i32 y = 7,
  3: optional string name,
}

const Cents PRICE = 1250

service Health {
  bool healthy(),
}
