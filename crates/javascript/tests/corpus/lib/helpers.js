const base = __ENV.BASE;

module.exports = {
  at: (path) => base + path,
  isOk(response) {
    return response.status === 200;
  },
};
