import type { Cause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
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
}

/**
 * T1 for an environment that exists: from before its first new fact until the import is complete, no schedule fires in it and no
 * request is served. A file without new facts does not interrupt it.
 */
export class ImportPause {
  readonly #deps: Deps
  readonly #into: Into
  readonly #cause: Cause
  #begun: Promise<void> | undefined

  constructor(deps: Deps, into: Into, cause: Cause) {
    this.#deps = deps
    this.#into = into
    this.#cause = cause
  }

  /** Resolves when the facts may be appended. */
  async before({ stream, revision, count }: Facts): Promise<void> {
    if (this.#into.place === 'absent') return
    if (!this.#begun) {
      const stored = await Array.fromAsync(this.#deps.store.read(stream, { from: revision, limit: count }))
      if (stored.length === count) return
    }
    await (this.#begun ??= this.#begin())
  }

  /**
   * The import failed: an environment that had content is used again. One that was empty has only a part of its content, so it
   * waits for a repetition of the import or for its deletion.
   */
  async abandon(): Promise<void> {
    if (!this.#begun) return
    await this.#begun
    const { env_id } = this.#into
    await this.#deps.aggregates.envs.handle(
      streamOf.env(env_id),
      { type: 'AbandonImport', env_id },
      { ...this.#cause, env_id },
    )
  }

  async #begin(): Promise<void> {
    const { store, aggregates, views } = this.#deps
    const { env_id, place } = this.#into
    const command = { type: 'BeginImport', env_id, empty: place === 'empty' } as const
    await aggregates.envs.handle(streamOf.env(env_id), command, { ...this.#cause, env_id })
    await views.directory.reach(await store.head())
  }
}
