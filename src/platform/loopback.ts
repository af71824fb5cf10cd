/** Servers that only say that an address is taken. */
import { createServer, type Server } from 'node:net';

/** A server on the address, or undefined where another one listens. */
export function listen(address: string | { port: number; host: string }): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(address, () => resolve(server));
  });
}
