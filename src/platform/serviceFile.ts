/**
 * File in which a service with its data in DATA_DIR records its address for the `spindle` command. The file
 * contains no secret.
 */
export const SERVICE_FILE = 'service.json';

export interface ServiceFile {
  /** URL `http://host:port` at which the service is reachable from the same machine. */
  readonly url: string;
  /** Process id of the listening service. */
  readonly pid: number;
}

/** Returns the URL at which a service that listens on a host is reachable from the same machine. */
export function localUrl(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`;
  if (host === '::') return `http://[::1]:${port}`;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
