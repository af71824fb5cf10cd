/** The servers of a measurement as processes of their own. */
import type { Cleanup } from '../test/support/cleanup.js';
import { type Launch, ServerProcess } from '../test/support/serverProcess.js';

/** Starts a server in production mode and waits until it is ready; the clean-up ends it. */
export async function startServerProcess(launch: Launch, cleanup: Cleanup): Promise<ServerProcess> {
  const server = ServerProcess.launch({ ...launch, env: { NODE_ENV: 'production', ...launch.env } });
  cleanup.add(() => server.stop());
  await server.ready();
  // What it says of its start matters only where that fails; what it says afterwards is a warning.
  server.child.stderr?.pipe(process.stderr);
  return server;
}
