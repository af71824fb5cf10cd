/** A TCP proxy of the test's own: it can hold back or cut what goes either way. */
import { connect, createServer, type Socket } from 'node:net';

export interface Cable {
  /** The given URL, through the proxy. */
  readonly url: string;
  /** Forwards answers of the store; false: they are swallowed. */
  answers: boolean;
  /** Called with each chunk of requests that was forwarded; may cut. */
  onRequest: (chunk: Buffer) => void;
  /** Cuts every connection; new ones are made as before. */
  cut(): void;
  close(): Promise<void>;
}

export async function proxy(target: string): Promise<Cable> {
  const url = new URL(target);
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const store = connect(Number(url.port), url.hostname);
    for (const socket of [client, store]) {
      socket.setNoDelay(true);
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        store.destroy();
      });
    }
    client.on('data', (chunk: Buffer) => {
      store.write(chunk);
      made.onRequest(chunk);
    });
    store.on('data', (chunk: Buffer) => {
      if (made.answers) client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(target);
  through.port = String((server.address() as { port: number }).port);
  const made: Cable = {
    url: through.href,
    answers: true,
    onRequest: () => {},
    cut() {
      for (const socket of open) socket.destroy();
    },
    async close() {
      made.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return made;
}
