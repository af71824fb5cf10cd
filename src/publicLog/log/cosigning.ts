/**
 * Collects cosignatures of witnesses (LOG_POLICY). One worker at a time runs a round, in which it asks all
 * witnesses to cosign the newest signed checkpoint, at most once per `everyMs`. If the policy has a quorum, a
 * checkpoint is published once enough cosignatures are stored. Without a quorum it is already published, and
 * cosignatures are added to it.
 */
import { randomUUID } from 'node:crypto';
import { parseCheckpoint } from '../../domain/publicLog/checkpoints.js';
import { noteText, parseNote, type SignatureLine, signersOf, vkeyOf } from '../../domain/publicLog/notes.js';
import type { Policy, Witness } from '../../domain/publicLog/policy.js';
import { hashInTile, tilesRead, tileWith } from '../../domain/publicLog/tiles.js';
import { consistencyPath } from '../../domain/publicLog/tree.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { witnessNote } from './forkEvidence.js';
import { logState } from './publicLog.store.js';
import { readTiles } from './publicLogReads.store.js';
import { ASK_WITHIN_MS, type SubmissionResult, submit } from './submission.js';
import {
  beginRound,
  endRound,
  type KnownWitness,
  lookAtWitnesses,
  noteAnswer,
  type SignedCheckpoint,
  storeCosignatures,
  type WitnessLook,
} from './witnesses.store.js';

/** Interval at which this process checks whether it may start a round of requests, in ms. */
const LOOK_MS = 250;
/** Time after which a witness that refused is asked again, in ms. */
const REFUSED_MS = 60_000;
/** Time after which an unchanged tree is cosigned again, in seconds. */
const AGAIN_SECONDS = 600;
/**
 * Maximum duration of a round of requests, in ms. After this time another worker may run a round, even if the
 * worker that began this one was terminated.
 */
const ROUND_MS = 3 * ASK_WITHIN_MS;

export class Cosigning extends PeriodicService {
  readonly name = 'witnesses';
  readonly #holder = randomUUID();
  /** Witnesses by vkey. */
  readonly #witnesses: ReadonlyMap<string, Witness>;
  /**
   * Requests to witnesses that are still in progress although their round has ended, by vkey of the witness.
   */
  readonly #asking = new Map<string, Promise<void>>();
  /** Latest result of each witness by vkey, so that only changes are reported. */
  readonly #answers = new Map<string, SubmissionResult['result']>();
  #look: WitnessLook = { published: 0, ages: [] };

  constructor(
    private readonly options: {
      readonly sql: Sql;
      readonly policy: Policy;
      /** Minimum interval between the starts of two rounds of requests to the witnesses, in ms. */
      readonly everyMs: number;
      readonly events: EventEmitter;
      /** Called when any worker has published a tree of the given size. */
      readonly onPublished: (size: number) => void;
      /**
       * Checks a checkpoint that a witness returned for this log. It may be of another tree than this log
       * has, which is evidence of a fork.
       */
      readonly judge: (shown: { readonly from: string; readonly note: string }) => Promise<unknown>;
    },
  ) {
    super(
      { everyMs: Math.min(LOOK_MS, options.everyMs), firstAfterMs: 0 },
      taskFailed(options.events, 'public log cosigning'),
    );
    this.#witnesses = new Map(options.policy.witnesses.map((witness) => [vkeyOf(witness), witness]));
  }

  /**
   * Returns, for each witness of the policy, the seconds since its newest cosignature and whether its newest
   * response was a refusal. For a witness that never cosigned, the seconds count from the time when it was
   * first recorded.
   */
  states(): { readonly witness: string; readonly seconds: number; readonly isRefusing: boolean }[] {
    return this.#look.ages.flatMap(({ vkey, cosignedSeconds, knownSeconds, isRefusing }) => {
      const witness = this.#witnesses.get(vkey)?.label;
      return witness === undefined ? [] : [{ witness, seconds: cosignedSeconds ?? knownSeconds, isRefusing }];
    });
  }

  /** Asks the witnesses as soon as possible. Called when a new checkpoint was signed. */
  signed(): void {
    this.hurry();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await Promise.all(this.#asking.values());
  }

  protected async turn(): Promise<void> {
    const { sql, everyMs } = this.options;
    const started = performance.now();
    const round = await beginRound(sql, {
      holder: this.#holder,
      roundMs: ROUND_MS,
      againSeconds: AGAIN_SECONDS,
    });
    if (round !== undefined) {
      try {
        await this.#round(round.newest, round.witnesses);
      } finally {
        await endRound(sql, this.#holder, Math.max(0, everyMs - (performance.now() - started)));
      }
    }
    this.#look = await lookAtWitnesses(sql);
    this.options.onPublished(this.#look.published);
  }

  /**
   * Asks all witnesses that have not cosigned yet, in parallel, until the quorum is reached or all have
   * answered.
   */
  async #round(newest: SignedCheckpoint, states: readonly KnownWitness[]): Promise<void> {
    const asked: Promise<void>[] = [];
    let enough: () => void = () => {};
    const isEnough = new Promise<void>((resolve) => {
      enough = resolve;
    });
    for (const { vkey, size, hasCosigned, isDue } of states) {
      const witness = this.#witnesses.get(vkey);
      if (witness === undefined || hasCosigned || !isDue || this.#asking.has(vkey)) continue;
      const asking = this.#ask(witness, newest, size)
        .then((isPublished) => {
          if (isPublished && !this.options.policy.hasNoQuorum) enough();
        })
        .catch((error: unknown) => this.onTurnFailed(error))
        .finally(() => this.#asking.delete(vkey));
      this.#asking.set(vkey, asking);
      asked.push(asking);
    }
    await Promise.race([Promise.all(asked), isEnough]);
  }

  /** @returns whether the checkpoint is now published */
  async #ask(witness: Witness, newest: SignedCheckpoint, known: number): Promise<boolean> {
    const { logId, size } = newest;
    const { text } = parseNote(newest.note);
    const note = newest.note;
    const prove = (old: number): Promise<Buffer[]> => this.#prove(logId, old, size);
    const answer = await submit(witness, { size, text, note }, known <= size ? known : 0, prove).catch(
      (error: unknown): SubmissionResult => ({ result: 'failed', problem: (error as Error).message }),
    );
    const { sql } = this.options;
    const isPublished =
      answer.result === 'cosigned' &&
      (await storeCosignatures(sql, newest, (stored) => this.#added(stored, answer.line)));
    const isOvertaken = answer.result === 'overtaken' && (await this.#isOurs(witness, answer.size));
    if (!isOvertaken) this.#tell(witness, answer);
    const isRefused = answer.result === 'refused' || (answer.result === 'overtaken' && !isOvertaken);
    const cosigned = answer.result === 'cosigned' ? Math.min(answer.at, Date.now() / 1000) : undefined;
    const isOld = cosigned !== undefined && cosigned < Date.now() / 1000 - REFUSED_MS / 1000;
    await noteAnswer(sql, {
      logId,
      vkey: vkeyOf(witness),
      cosignedAt: cosigned,
      size: answer.result === 'cosigned' ? size : isOvertaken ? answer.size : undefined,
      refusal: isRefused ? answer.problem : undefined,
      restMs: isRefused || isOld ? REFUSED_MS : 0,
    });
    return isPublished;
  }

  /**
   * Returns whether this log has at least as many records as a witness reports. If not, the checkpoint of the
   * witness is checked as possible evidence of a fork.
   */
  async #isOurs(witness: Witness, size: number): Promise<boolean> {
    const { sql, judge } = this.options;
    const state = (await logState(sql))!;
    if (size <= state.size) return true;
    const note = await witnessNote(state.origin, witness.url!);
    if (note !== undefined) await judge({ from: `witness ${witness.label}`, note });
    return false;
  }

  async #prove(logId: number, old: number, size: number): Promise<Buffer[]> {
    if (old === 0 || old === size) return [];
    const wanted = tilesRead(size, (read) => consistencyPath(old, size, read));
    const tiles = await readTiles(this.options.sql, logId, wanted);
    return consistencyPath(old, size, (level, index) => {
      const place = tileWith(level, index, size);
      return hashInTile(tiles.get(`${place.level}/${place.index}`)!, level, index);
    });
  }

  /** An older cosignature of the same key is replaced. */
  #added(stored: string, line: SignatureLine): { note: string; cosignatures: number; isEnough: boolean } {
    const { policy } = this.options;
    const note = parseNote(stored);
    const others = note.lines.filter(({ name, keyId }) => name !== line.name || keyId !== line.keyId);
    const kept = [...others, line];
    const { origin } = parseCheckpoint(note.text);
    const signed = signersOf({ text: note.text, lines: kept }, policy.witnesses);
    return {
      note: noteText(note.text, kept),
      cosignatures: kept.filter(({ name }) => name !== origin).length,
      isEnough: policy.isSatisfied(signed),
    };
  }

  /** Reports a changed result of a witness. Repeated results are not reported. */
  #tell(witness: Witness, answer: SubmissionResult): void {
    const vkey = vkeyOf(witness);
    const before = this.#answers.get(vkey) ?? 'cosigned';
    this.#answers.set(vkey, answer.result);
    if (before === answer.result) return;
    const problem = answer.result === 'cosigned' ? undefined : answer.problem;
    this.options.events.emit('WitnessChanged', { witness: witness.label, result: answer.result, problem });
  }
}
