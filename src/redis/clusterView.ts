/** What a server of a Redis Cluster says of the cluster and of itself: CLUSTER NODES, which alone tells the configuration epochs. */

/** A primary as a server sees it. */
export interface PrimaryView {
  /** Kept over restarts of the server. */
  readonly nodeId: string;
  /** `host:port` */
  readonly address: string;
  /** Greater with each failover and each slot that is taken over: of two claims to a slot the one with the greater epoch holds. */
  readonly configEpoch: number;
  /** First and last slot of each range. */
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

export interface ClusterView {
  readonly primaries: readonly PrimaryView[];
  /** Of all servers, replicas and those that are gone included. */
  readonly nodeIds: ReadonlySet<string>;
  /** The server that was asked; undefined where it is a replica. */
  readonly self: PrimaryView | undefined;
  /** Replicas of the server that was asked, also those that are not attached now: one of them may take over, too. */
  readonly replicas: number;
}

/**
 * @param text the reply to CLUSTER NODES
 * @param askedHost of the server that was asked, which may not know its own
 */
export function readClusterNodes(text: string, askedHost: string): ClusterView {
  const primaries: PrimaryView[] = [];
  const nodeIds = new Set<string>();
  let self: PrimaryView | undefined;
  const replicated: string[] = [];
  for (const line of text.split('\n')) {
    const [nodeId, place, flags, primaryId, , , configEpoch, , ...slots] = line.split(' ');
    if (flags === undefined) continue;
    nodeIds.add(nodeId!);
    if (flags.split(',').includes('slave')) replicated.push(primaryId!);
    if (!flags.split(',').includes('master')) continue;
    // `ip:port@bus-port,hostname`; a hostname is what a certificate names.
    const [, ip, port, hostname] = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/.exec(place!) ?? [];
    const primary = {
      nodeId: nodeId!,
      address: `${hostname || bracketed(ip || askedHost)}:${port}`,
      configEpoch: Number(configEpoch),
      // Those in brackets are on their way: whoever has them still is named without brackets.
      ranges: slots.filter((range) => /^\d/.test(range)).map(rangeOf),
    };
    primaries.push(primary);
    if (flags.split(',').includes('myself')) self = primary;
  }
  const replicas = replicated.filter((primaryId) => primaryId === self?.nodeId).length;
  return { primaries, nodeIds, self, replicas };
}

/** An IPv6 address as URLs have it. */
const bracketed = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

function rangeOf(range: string): [number, number] {
  const [first, last = first] = range.split('-').map(Number) as [number, number?];
  return [first, last];
}
