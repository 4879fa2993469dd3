export function visit(api) {
  return api.get('/cart');
}

export default visit;
