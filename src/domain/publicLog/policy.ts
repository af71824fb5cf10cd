/**
 * Parses policy files (C2SP tlog-policy), which list the trusted logs and the witnesses that must have seen a
 * checkpoint.
 */
import { fromDecimal } from './encoding.js';
import { parseVkey, type Verifier } from './notes.js';

/** Maximum number of lines of a policy file. */
const LINES_MAX = 10_000;
const NAME = /^[^\s+]+$/u;

export interface Witness extends Verifier {
  /** Name of the witness in the policy file. */
  readonly label: string;
  /** URL to which checkpoints are submitted. Undefined if the policy has no URL for the witness. */
  readonly url: string | undefined;
  /** Line number of the witness in the policy file, from 1. */
  readonly line: number;
}

interface Group {
  readonly threshold: number;
  readonly members: readonly string[];
}

interface PolicyLog extends Verifier {
  readonly url: string | undefined;
}

class PolicyError extends Error {
  /** @param line line number in the policy file from 1; 0 means the whole file */
  constructor(line: number, message: string) {
    super(line === 0 ? `The policy ${message}` : `Line ${line} of the policy ${message}`);
  }
}

export class Policy {
  readonly logs: PolicyLog[] = [];
  readonly witnesses: Witness[] = [];
  readonly #groups = new Map<string, Group>();
  #quorum: string | undefined;
  readonly #rules: string[] = [];

  /** @throws PolicyError with the number of the faulty line */
  constructor(text: string) {
    const lines = text.split('\n');
    if (lines.length > LINES_MAX) throw new PolicyError(0, `has more than ${LINES_MAX} lines`);
    lines.forEach((line, at) => {
      const words = line.trim().split(/[ \t]+/);
      if (words[0] !== '' && !words[0]!.startsWith('#')) this.#read(at + 1, words);
    });
    if (this.#quorum === undefined) throw new PolicyError(0, 'has no quorum line');
  }

  #read(line: number, [word, ...rest]: string[]): void {
    if (word === 'log') this.#readLog(line, rest);
    else if (word === 'witness') this.#readWitness(line, rest);
    else if (word === 'group') this.#readGroup(line, rest);
    else if (word === 'quorum') this.#readQuorum(line, rest);
    else
      throw new PolicyError(line, `begins with «${word}», but must begin with log, witness, group or quorum`);
    if (word !== 'log') this.#rules.push([word, ...rest].join(' '));
  }

  /**
   * Lines of the policy with the witnesses, groups and quorum, from which a policy with the same rules can be
   * made.
   */
  get rules(): readonly string[] {
    return this.#rules;
  }

  #key(line: number, vkey: string, algorithm: Verifier['algorithm']): Verifier {
    let key: Verifier;
    try {
      key = parseVkey(vkey);
    } catch (error) {
      throw new PolicyError(line, `has an invalid key. ${(error as Error).message}`);
    }
    if (key.algorithm === algorithm) return key;
    throw new PolicyError(line, `has the key of a ${key.algorithm}, but needs the key of a ${algorithm}`);
  }

  #url(line: number, url: string | undefined): string | undefined {
    if (url !== undefined && !(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) {
      throw new PolicyError(line, `has the address «${url}», which is not an http or https URL`);
    }
    return url?.replace(/\/+$/, '');
  }

  #readLog(line: number, [vkey, url, ...more]: string[]): void {
    if (vkey === undefined || more.length > 0)
      throw new PolicyError(line, 'must have the form: log VKEY [URL]');
    this.logs.push({ ...this.#key(line, vkey, 'log'), url: this.#url(line, url) });
  }

  #newName(line: number, name: string): void {
    if (!NAME.test(name) || name === 'none') throw new PolicyError(line, `has the invalid name «${name}»`);
    if (this.#groups.has(name) || this.witnesses.some(({ label }) => label === name)) {
      throw new PolicyError(line, `defines the name ${name} a second time`);
    }
  }

  #readWitness(line: number, [label, vkey, url, ...more]: string[]): void {
    if (label === undefined || vkey === undefined || more.length > 0) {
      throw new PolicyError(line, 'must have the form: witness NAME VKEY [URL]');
    }
    this.#newName(line, label);
    const key = this.#key(line, vkey, 'witness');
    if (this.witnesses.some(({ publicKey }) => publicKey.equals(key.publicKey))) {
      throw new PolicyError(line, 'has the same key as an earlier witness');
    }
    this.witnesses.push({ ...key, label, url: this.#url(line, url), line });
  }

  #readGroup(line: number, [name, count, ...members]: string[]): void {
    if (name === undefined || count === undefined || members.length === 0) {
      throw new PolicyError(line, 'must have the form: group NAME any|all|N MEMBER...');
    }
    this.#newName(line, name);
    const isTaken = (member: string): boolean =>
      [...this.#groups.values()].some((group) => group.members.includes(member));
    members.forEach((member, at) => {
      const isKnown = this.#groups.has(member) || this.witnesses.some(({ label }) => label === member);
      if (!isKnown) throw new PolicyError(line, `refers to «${member}», which no earlier line defines`);
      if (members.indexOf(member) !== at || isTaken(member)) {
        throw new PolicyError(line, `has the member ${member}, which is already in a group`);
      }
    });
    const threshold = count === 'any' ? 1 : count === 'all' ? members.length : fromDecimal(count);
    if (threshold === undefined || threshold < 1 || threshold > members.length) {
      throw new PolicyError(
        line,
        `has the threshold «${count}», which must be any, all or a number from 1 to ${members.length}`,
      );
    }
    this.#groups.set(name, { threshold, members });
  }

  #readQuorum(line: number, [name, ...more]: string[]): void {
    if (name === undefined || more.length > 0)
      throw new PolicyError(line, 'must have the form: quorum NAME|none');
    if (this.#quorum !== undefined) throw new PolicyError(line, 'is a second quorum line');
    const isKnown =
      name === 'none' || this.#groups.has(name) || this.witnesses.some(({ label }) => label === name);
    if (!isKnown) throw new PolicyError(line, `refers to «${name}», which no earlier line defines`);
    this.#quorum = name;
  }

  get hasNoQuorum(): boolean {
    return this.#quorum === 'none';
  }

  /** @param signed witnesses with verified cosignatures */
  isSatisfied(signed: readonly Witness[]): boolean {
    const counts = (name: string): boolean => {
      const group = this.#groups.get(name);
      if (group === undefined) return signed.some(({ label }) => label === name);
      return group.members.filter(counts).length >= group.threshold;
    };
    return this.hasNoQuorum || counts(this.#quorum!);
  }
}
