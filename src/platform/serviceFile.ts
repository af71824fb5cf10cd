/** Where a service that keeps its data in DATA_DIR writes down how it is reached, for the command. It has no secret. */
export const SERVICE_FILE = 'service.json';

export interface ServiceFile {
  /** `http://host:port`, from the same machine. */
  readonly url: string;
  /** Of the process that listens. */
  readonly pid: number;
}

/** Where a service that listens on a host is reached from the same machine. */
export function localUrl(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`;
  if (host === '::') return `http://[::1]:${port}`;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
