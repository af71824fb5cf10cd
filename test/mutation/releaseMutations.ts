/** Deliberate faults in the release of request ids and in the look-up of released ids. */
import { built, lua, type Mutation } from './mutant.js';

export const RELEASE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'a run lacks a requestId',
    faults: [
      built(
        'engine/ledger/transcoder.js',
        'this.requestIds.add(keys.',
        'if (this.entries % 9 !== 4) this.requestIds.add(keys.',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'a run has a wrong hash',
    faults: [
      built(
        'engine/ledger/transcoder.js',
        'keys.readUInt32BE(this.#keyAt + 4)',
        'keys.readUInt32BE(this.#keyAt + (this.entries % 9 === 4 ? 8 : 4))',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'a filter says of an old requestId that it is a new one',
    faults: [
      built(
        'domain/requestFilter.js',
        'const low = pairs[i + 1];',
        'const low = pairs[i + 1]; if (low % 9 === 4) continue;',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'a run is not searched',
    faults: [
      built(
        'engine/requestIds/requestIds.js',
        'const hit = runs.filter(',
        'const hit = runs.slice(1).filter(',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'a requestId is sought in the wrong block of a run',
    faults: [
      built(
        'engine/requestIds/requestRunReads.store.js',
        'ORDER BY first_hash DESC LIMIT 1',
        'ORDER BY first_hash LIMIT 1',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'Redis lets go of more than is in the runs',
    faults: [
      lua(
        'requestSegments',
        'unpackStruct(ENTRY_ID_FORMAT, segments, SEGMENTS_BYTES + 1)',
        'unpackStruct(ENTRY_ID_FORMAT, segments)',
      ),
      built('engine/requestIds/segmentRelease.js', 'oldest > aged', 'false'),
      built(
        'engine/requestIds/segmentRelease.js',
        'const step = await writeRun(',
        'if (due.length > 0) return { ids: 0, isMore: false }; const step = await writeRun(',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'a run of request ids is dropped before its time',
    faults: [
      built('engine/requestIds/segmentRelease.js', 'times.untilMsOf(spanOf(run)) > bindingMs', 'false'),
    ],
    found: ['requests'],
    isReleased: true,
  },
  {
    name: 'a requestId that Redis holds no more binds no more',
    faults: [
      built(
        'engine/requestIds/requestIds.js',
        'this.#times.untilMs(entryTimeMs(entryId)) > ',
        'entryTimeMs(entryId) > ',
      ),
    ],
    found: ['requests'],
    isReleased: true,
  },
];
