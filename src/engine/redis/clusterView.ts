/**
 * Parses the reply to CLUSTER NODES, the only command that reports the configuration epochs of a Redis
 * Cluster.
 */

/** A primary in the view of one server. */
export interface PrimaryView {
  /** Id of the node. It survives restarts of the server. */
  readonly nodeId: string;
  /** Address of the primary, `host:port`. */
  readonly address: string;
  /**
   * Configuration epoch, which rises with each failover and each takeover of a slot. If two primaries claim a
   * slot, the primary with the higher epoch holds it.
   */
  readonly configEpoch: number;
  /** First and last hash slot of each range that the primary holds. */
  readonly ranges: readonly (readonly [first: number, last: number])[];
}

export interface ClusterView {
  readonly primaries: readonly PrimaryView[];
  /** Node ids of all servers, including replicas and servers that have left the cluster. */
  readonly nodeIds: ReadonlySet<string>;
  /** The server that was asked for its view; undefined if it is a replica. */
  readonly self: PrimaryView | undefined;
  /**
   * Addresses (`host:port`) of the replicas of the server that was asked. Detached replicas are included,
   * because one of them may still be promoted.
   */
  readonly replicas: readonly string[];
}

/** @param askedHost host of the server that sent the reply, because the server may not know its own host */
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
      // A hash slot in brackets is being migrated. The primary that still holds the slot also lists it
      // without brackets.
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

/**
 * @param place `ip:port@bus-port,hostname`; the hostname is preferred, because TLS certificates contain it
 */
function addressOf(place: string, askedHost: string): string {
  const [, ip, port, hostname] = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/.exec(place) ?? [];
  return `${hostname || bracketed(ip || askedHost)}:${port}`;
}

/** Formats an IPv6 address for a URL. */
const bracketed = (host: string): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;

function rangeOf(range: string): [number, number] {
  const [first, last = first] = range.split('-').map(Number) as [number, number?];
  return [first, last];
}
