// What `brunt serve thrift` serves: any method returns its argument, so that this could as well be your own service.

exception Refused {
  1: string why,
}

enum Colour { RED = 1, GREEN, BLUE }

struct Item {
  1: required string sku,
  2: i32 count = 1,
  3: optional Colour colour,
}

service Echo {
  i32 echo(1: i32 value),
  Item item(1: Item item),
  map<string, list<Item>> items(1: map<string, list<Item>> items),
  uuid id(1: uuid id),
  void nothing(),
  oneway void tell(1: string what),
  i32 refuse() throws (1: Refused refused),
  i32 fail(),
}
