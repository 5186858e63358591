import type { Recorded } from '../events/event.ts'
import type { DomainEvent } from '../events/index.ts'
import { redact } from '../events/redact.ts'
import { apiKey } from './apiKey.ts'
import { calls } from './calls.ts'
import { context } from './context.ts'
import { domains } from './customDomains.ts'
import { dataKey } from './dataKey.ts'
import type { Decider, Folded } from './decider.ts'
import { env } from './env.ts'
import { file } from './file.ts'
import { request } from './idempotentRequest.ts'
import { installation } from './installation.ts'
import { issued } from './issued.ts'
import { keyUse } from './keyUse.ts'
import { name } from './name.ts'
import { operatorSession } from './operatorSession.ts'
import { org } from './org.ts'
import { project } from './project.ts'
import { runLog } from './runLog.ts'
import { type Changes, changesBetween, type Plain, plainOf } from './plainState.ts'
import { stream } from './stream.ts'
import { upload } from './upload.ts'
import { webhook } from './webhook.ts'
import { worker } from './worker.ts'

/** The fold of one stream: its state now, and after a fact. */
interface Fold {
  readonly initial: unknown
  readonly next: (fact: Folded) => unknown
}

const folding =
  <State, Command, Event extends DomainEvent>(decider: Decider<State, Command, Event>) =>
  (): Fold => {
    const initial = decider.initial()
    let state = initial
    return { initial, next: (fact) => (state = decider.evolve(state, fact)) }
  }

/** The decider of a stream, by the first word of its name. */
const foldOf: Readonly<Record<string, () => Fold>> = {
  stream: folding(stream),
  project: folding(project),
  projectname: folding(name),
  webhook: folding(webhook),
  file: folding(file),
  upload: folding(upload),
  installation: folding(installation),
  operatorsession: folding(operatorSession),
  org: folding(org),
  domains: folding(domains),
  domainname: folding(name),
  env: folding(env),
  calls: folding(calls),
  key: folding(apiKey),
  idem: folding(request),
  runlog: folding(runLog),
  context: folding(context),
  datakeys: folding(dataKey),
  issued: folding(issued),
  keyuse: folding(keyUse),
  worker: folding(worker),
}

/** A fact of a replayed stream, with what it changed and the state after it. */
export interface Replayed {
  readonly changes: Changes
  readonly state: Plain
}

/** Folds a stream again. The facts are redacted before they are folded, so no state can contain a secret. */
export class Replay {
  readonly #fold: Fold
  #state: unknown
  /** The state as it was shown last. */
  #plain: Plain | undefined

  /** Null if no stream has such a name. */
  static of(stream: string): Replay | null {
    const [kind = ''] = stream.split('-')
    const fold = Object.hasOwn(foldOf, kind) ? foldOf[kind] : undefined
    return fold ? new Replay(fold()) : null
  }

  private constructor(fold: Fold) {
    this.#fold = fold
    this.#state = fold.initial
  }

  /** Folds a fact that is not shown. */
  skip(fact: Recorded): void {
    if (fact.event.type === 'FactExpired') return
    this.#state = this.#fold.next({ ...fact, event: redact(fact.event) })
    this.#plain = undefined
  }

  /** Folds a fact, and returns what it changed. */
  step(fact: Recorded): Replayed {
    const before = this.#plain ?? plainOf(this.#state) // a fold may change its state in place
    this.skip(fact)
    const state = plainOf(this.#state)
    this.#plain = state
    return { changes: changesBetween(before, state), state }
  }
}
