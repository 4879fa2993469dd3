export function htmlReport(data) {
  const names = Object.keys(data.metrics).sort();
  return `<html><body><h1>${data.metrics.http_reqs.values.count} requests</h1><ul>${names.map((n) => `<li>${n}</li>`).join('')}</ul></body></html>`;
}
