import { filesOf } from '../../content/contentKey.ts'
import { payloadsOf } from '../../content/payloads.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { DomainEvent } from '../../events/index.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { type BuildDoc, buildDocId } from '../../projections/builds.ts'
import type { CommandDeps } from '../deps.ts'
import { type Moved, movedBuild, refsIn } from './earlierContent.ts'
import type { RecordWriter } from './records.ts'

type Deps = Pick<CommandDeps, 'views' | 'blobs'>

/** The builds of an environment. */
export const buildsOf = ({ views }: Pick<Deps, 'views'>, env_id: string): AsyncGenerator<BuildDoc> =>
  everyDoc(views.builds, {
    id: ({ project_id, build_id }: BuildDoc) => buildDocId(project_id, build_id),
    equal: { env_id },
    sort: 'order',
  })

export interface ExportedContent {
  /** Bytes. */
  readonly size: number
  readonly sha256: string
}

/** Writes the blobs of an environment. */
export class ExportedBlobs {
  /** The number of blobs so far. */
  count = 0
  /** Each blob of a file or build by its key in the file. */
  readonly content = new Map<string, ExportedContent>()
  /** The SHA-256 of each payload whose key does not contain it: a webhook body, or a damaged one. */
  readonly #others = new Map<string, string>()
  readonly #deps: Deps
  readonly #env_id: string
  readonly #writer: RecordWriter
  readonly #payloads = new Set<string>()

  constructor(deps: Deps, { env_id, writer }: { readonly env_id: string; readonly writer: RecordWriter }) {
    this.#deps = deps
    this.#env_id = env_id
    this.#writer = writer
  }

  /** Yields all blobs that are stored as those of the environment, and the content of its builds. */
  async *all(): AsyncGenerator<Buffer> {
    const { blobs } = this.#deps
    const env_id = this.#env_id
    for await (const { key, size } of blobs.list(payloadsOf(env_id)))
      yield* this.#payload({ from: key, to: key }, size)
    for await (const { key, size } of blobs.list(filesOf(env_id)))
      yield* this.#content({ from: key, to: key }, size)
    // A list of folders would also find lists of functions of refused uploads.
    for await (const build of buildsOf(this.#deps, env_id))
      for (const moved of movedBuild(build)) yield* this.#content(moved, await this.#sizeOf(moved))
  }

  /** Yields payloads that are stored elsewhere, each once. */
  async *payloads(moved: readonly Moved[]): AsyncGenerator<Buffer> {
    for (const each of moved) {
      if (this.#payloads.has(each.to)) continue
      this.#payloads.add(each.to)
      yield* this.#payload(each, await this.#sizeOf(each))
    }
  }

  /** Throws `conflict` if a payload of an exported fact has other bytes. One that is not exported may have expired. */
  demandPayloads(fact: DomainEvent): void {
    for (const { key, sha256 } of refsIn(fact)) {
      const found = this.#others.get(key)
      if (found !== undefined && found !== sha256)
        throw new AppError(
          'conflict',
          `The payload ${key} is damaged in the blobs: restore it, and repeat the export`,
        )
    }
  }

  async #sizeOf({ from }: Moved): Promise<number> {
    return (await this.#deps.blobs.head(from))?.size ?? 0
  }

  async *#payload(moved: Moved, size: number): AsyncGenerator<Buffer> {
    const sha256 = yield* this.#blob(moved, size)
    if (sha256 !== null && !moved.to.endsWith(`/${sha256}.json`)) this.#others.set(moved.to, sha256)
  }

  async *#content(moved: Moved, size: number): AsyncGenerator<Buffer> {
    const sha256 = yield* this.#blob(moved, size)
    if (sha256 !== null) this.content.set(moved.to, { size, sha256 })
  }

  /** Returns null if the blob does not exist: it may have been removed meanwhile, after the fact that says so. */
  async *#blob({ from, to }: Moved, size: number): AsyncGenerator<Buffer, string | null> {
    const content = await this.#deps.blobs.get(from).catch((error: unknown) => {
      if (isAppError(error, 'not_found')) return null
      throw error
    })
    if (!content) return null
    const sha256 = yield* this.#writer.blob({ key: to, size }, content as AsyncIterable<Buffer>)
    this.count++
    return sha256
  }
}
