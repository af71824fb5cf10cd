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
  /** `host:port` of the replicas of the server that was asked, also of those that are not attached now: one of them may take over, too. */
  readonly replicas: readonly string[];
}

/**
 * @param text the reply to CLUSTER NODES
 * @param askedHost of the server that was asked, which may not know its own
 */
export function readClusterNodes(text: string, askedHost: string): ClusterView {
  const primaries: PrimaryView[] = [];
  const nodeIds = new Set<string>();
  let self: PrimaryView | undefined;
  const replicated: { readonly primaryId: string; readonly address: string }[] = [];
  for (const line of text.split('\n')) {
    const [nodeId, place, flags, primaryId, , , configEpoch, , ...slots] = line.split(' ');
    if (flags === undefined) continue;
    nodeIds.add(nodeId!);
    const address = addressOf(place!, askedHost);
    if (flags.split(',').includes('slave')) replicated.push({ primaryId: primaryId!, address });
    if (!flags.split(',').includes('master')) continue;
    const primary = {
      nodeId: nodeId!,
      address,
      configEpoch: Number(configEpoch),
      // Those in brackets are on their way: whoever has them still is named without brackets.
      ranges: slots.filter((range) => /^\d/.test(range)).map(rangeOf),
    };
    primaries.push(primary);
    if (flags.split(',').includes('myself')) self = primary;
  }
  const replicas = replicated.flatMap(({ primaryId, address }) =>
    primaryId === self?.nodeId ? [address] : [],
  );
  return { primaries, nodeIds, self, replicas };
}

/** @param place `ip:port@bus-port,hostname`; a hostname is what a certificate names */
function addressOf(place: string, askedHost: string): string {
  const [, ip, port, hostname] = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/.exec(place) ?? [];
  return `${hostname || bracketed(ip || askedHost)}:${port}`;
}

/** An IPv6 address as URLs have it. */
const bracketed = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

function rangeOf(range: string): [number, number] {
  const [first, last = first] = range.split('-').map(Number) as [number, number?];
  return [first, last];
}
