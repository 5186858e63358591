import { type EnvCommand, overtaken } from '../../domain/env.ts'
import type { Cause, EnvCause } from '../../events/event.ts'
import type { EventOf } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'
import { newId } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'
import type { Place } from './importHeader.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'views'>

interface Into {
  readonly env_id: string
  readonly place: Place
}

/** Consecutive facts of one stream. */
interface Facts {
  readonly stream: string
  readonly revision: number
  readonly count: number
  /** Absent if any facts may be at their place, as in the stream of days, to which this installation adds its own. */
  readonly ids?: readonly string[]
}

/** The numbers of records in the file. */
type Numbers = Omit<EventOf<'EnvImported'>, 'type' | 'env_id'>

/**
 * T1 for an environment that exists: from before its first new fact until the import is complete, no schedule fires in it and no
 * request is served. A file without new facts does not interrupt it. An import takes the place of one in progress, because nothing
 * shows whether that one has died: the earlier one can neither append any more nor end the pause.
 */
export class ImportPause {
  readonly #deps: Deps
  readonly #into: Into
  readonly #cause: EnvCause
  readonly #import_id = newId()
  #begun: Promise<void> | undefined

  constructor(deps: Deps, into: Into, cause: Cause) {
    this.#deps = deps
    this.#into = into
    this.#cause = { ...cause, env_id: into.env_id }
  }

  /** Resolves when the facts may be appended. Rejects with `conflict` when a later import has begun. */
  async before(facts: Facts): Promise<void> {
    if (!this.#begun) {
      const { status, importing } = await this.#state()
      if (status === 'absent' || (!importing && (await this.#hasAll(facts)))) return
    }
    await (this.#begun ??= this.#begin())
    if ((await this.#state()).importing?.import_id !== this.#import_id) throw overtaken()
  }

  /** The environment is complete and used. Rejects with `conflict` when a later import has begun. */
  async end(numbers: Numbers): Promise<void> {
    if (!this.#begun && (await this.#state()).importing) await (this.#begun = this.#begin())
    await this.#handle({ type: 'RecordImport', ...this.#own, ...numbers })
  }

  /**
   * The import failed: an environment that had content is used again. One that was empty has only a part of its content, so it
   * waits for a repetition of the import or for its deletion.
   */
  async abandon(): Promise<void> {
    if (!this.#begun) return
    await this.#begun
    await this.#handle({ type: 'AbandonImport', ...this.#own })
  }

  async #begin(): Promise<void> {
    const { store, views } = this.#deps
    await this.#handle({ type: 'BeginImport', ...this.#own, empty: this.#into.place === 'empty' })
    await views.directory.reach(await store.head())
  }

  async #hasAll({ stream, revision, count, ids }: Facts): Promise<boolean> {
    const { store } = this.#deps
    if (!ids || stream === streamOf.calls(this.#into.env_id)) {
      const stored = await Array.fromAsync(store.read(stream, { from: revision, limit: count }))
      return stored.length === count
    }
    const missing = new Set(ids)
    for await (const { id } of store.read(stream, { from: revision }))
      if (missing.delete(id) && missing.size === 0) return true
    return false
  }

  get #own() {
    return { env_id: this.#into.env_id, import_id: this.#import_id }
  }

  get #stream() {
    return streamOf.env(this.#into.env_id)
  }

  #state() {
    return this.#deps.aggregates.envs.read(this.#stream, ({ status, importing }) => ({ status, importing }))
  }

  #handle(command: EnvCommand) {
    return this.#deps.aggregates.envs.handle(this.#stream, command, this.#cause)
  }
}
