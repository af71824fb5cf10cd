/** Servers whose only purpose is to occupy an address. */
import { createServer, type Server } from 'node:net';

/** Starts a server on the address. Returns undefined if another server uses the address. */
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
