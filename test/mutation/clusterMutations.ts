/**
 * Deliberate faults in the code that makes a cluster safe: the acknowledgement of replicas, the choice of the
 * node, and the results of failed calls.
 */
import type { ClusterScenario } from './clusterScenarios.js';
import { built, type Fault, lua } from './mutant.js';

export interface ClusterMutation {
  readonly name: string;
  readonly faults: readonly Fault[];
  /** The promise that the fault breaks. */
  readonly breaks: ClusterScenario;
}

/**
 * This fault makes the client follow a redirection on a new connection, as an ordinary cluster client does.
 */
const FOLLOW_ASK = `const asked = /^ASK \\d+ (.+)$/.exec(messageOf(error));
            if (asked) {
                const url = new URL(client.url);
                url.host = asked[1];
                const other = new RedisClient(url.href, () => {});
                await other.connect();
                try {
                    await other.call('ASKING');
                    return await other.callBuffer('EVAL', script.source, keys.length, ...keys, ...args);
                } finally {
                    other.disconnect();
                }
            }
            `;

export const CLUSTER_MUTATIONS: readonly ClusterMutation[] = [
  {
    name: 'one replica less than there are is enough',
    faults: [
      built(
        'engine/redis/replicatedCalls.js',
        'Number(acknowledged) >= wanted',
        'Number(acknowledged) >= wanted - 1',
      ),
    ],
    breaks: 'a primary that is alone acknowledges nothing',
  },
  {
    name: 'the replication id does not count',
    faults: [built('engine/redis/serverIdentity.js', ' && replicationId === replicationIdNow', '')],
    breaks: 'a primary that was a replica in between is repaired',
  },
  {
    name: 'ASK is followed',
    faults: [
      built(
        'engine/redis/node.js',
        "if (!messageOf(error).startsWith('NOSCRIPT'))",
        `${FOLLOW_ASK}if (!messageOf(error).startsWith('NOSCRIPT'))`,
      ),
    ],
    breaks: 'a slot that is half moved is not dealt from',
  },
  {
    name: 'a repeated operation writes nothing before WAIT',
    faults: [lua('include/cell', "call('HSET', KEYS[1], operationField, stored)", '')],
    breaks: 'a repeated operation writes',
  },
  {
    name: 'the client library sends again what was not answered, and an error is taken for refused',
    faults: [
      built(
        'engine/redis/redisClient.js',
        'autoResendUnfulfilledCommands: false',
        'autoResendUnfulfilledCommands: true',
      ),
      built('engine/redis/redisClient.js', 'maxRetriesPerRequest: 0', 'maxRetriesPerRequest: null'),
    ],
    breaks: 'an error after a lost answer leaves the spin in doubt',
  },
  {
    name: 'an error of a second try is taken for refused',
    faults: [
      built(
        'engine/cells/cellQueue.js',
        'if (error instanceof RefusedError && !mayHaveRun)',
        'if (error instanceof RefusedError)',
      ),
    ],
    breaks: 'an error after a lost answer leaves the spin in doubt',
  },
];
