/** The address of a store that several servers may stand behind: `redis://user:password@a:7000,b:7001/0`. */

const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/;

/** The address of each server, in order; the address itself where it names one server, or is none. */
export function seedsOf(url: string): string[] {
  const [, begin, hosts, end] = PARTS.exec(url) ?? [];
  return hosts?.includes(',') ? hosts.split(',').map((host) => `${begin}${host}${end}`) : [url];
}
