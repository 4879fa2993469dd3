import { WebSocket } from 'k6/experimental/websockets';
import { Counter } from 'k6/metrics';

const closes = new Counter('closes');

export default async function () {
  const text = await new Promise((resolve, reject) => {
    const ws = new WebSocket('WSBASE/pushed');
    ws.onmessage = (event) => {
      if (event.data === 'ready') ws.send('bye');
      else resolve(event.data);
    };
    ws.onerror = (event) => reject(new Error(event.error));
    ws.onclose = () => closes.add(1);
  });
  console.log(`the server said ${text}`);
}
