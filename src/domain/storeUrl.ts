/** URL of a store that may list several servers: `redis://user:password@a:7000,b:7001/0`. */

const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/;

/**
 * Returns the URL of each server in order. A URL that lists one server, or is invalid, is returned unchanged.
 */
export function seedsOf(url: string): string[] {
  const [, begin, hosts, end] = PARTS.exec(url) ?? [];
  return hosts?.includes(',') ? hosts.split(',').map((host) => `${begin}${host}${end}`) : [url];
}
