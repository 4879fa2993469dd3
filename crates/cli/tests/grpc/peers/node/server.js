// A cart over @grpc/grpc-js that answers with what it was given; with health checking and reflection, v1 and v1alpha. Prints its port,
// and ends with its standard input.
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const { HealthImplementation } = require("grpc-health-check");
const { ReflectionService } = require("@grpc/reflection");

const options = { keepCase: true, longs: String, enums: String, oneofs: true };
const definition = loader.loadSync(process.argv[2], options);

const cart = {
  Add: (call, answer) => answer(null, call.request),
  Watch: (call) => {
    for (let number = 0; number < call.request.count; number += 1) {
      call.write({ ...call.request, big: String(number) });
    }
    call.end();
  },
  Fill: (call, answer) => {
    const all = [];
    call.on("data", (item) => all.push(item.sku));
    call.on("end", () => answer(null, { sku: all.join(""), count: all.length }));
  },
  Chat: (call) => {
    call.on("data", (item) => call.write(item));
    call.on("end", () => call.end());
  },
};

const server = new grpc.Server();
server.addService(definition["shop.Cart"], cart);
new HealthImplementation({ "": "SERVING" }).addToServer(server);
new ReflectionService(definition).addToServer(server);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) {
    throw error;
  }
  console.log(port);
});
process.stdin.on("end", () => process.exit(0)).resume();
