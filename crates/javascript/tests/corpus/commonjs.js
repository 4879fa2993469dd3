const http = require('k6/http');
const { check, sleep } = require('k6');
const helpers = require('./lib/helpers.js');
const data = JSON.parse(open('./data/products.json'));

exports.options = { iterations: 2 };

exports.setup = function () {
  return { first: data.items[0].id };
};

exports.default = function (given) {
  var res = http.get(helpers.at('/item/' + given.first));
  check(res, { 'ok': helpers.isOk });
  sleep(0.01);
};
