// What `brunt serve thrift` serves: it returns argument 1 of any method.

enum Colour { RED = 1, GREEN = 2 }

struct Item {
  1: required string sku,
  2: i32 count = 1,
  3: optional Colour colour,
}

service Echo {
  i32 echo(1: i32 value),
  Item item(1: Item item),
}
