import { existsSync, readFileSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { JOURNAL } from './backupFolder.ts'
import type { Segment, Sum } from './manifest.ts'

/** The bytes of a blob in the backup. */
export interface StoredBlob extends Sum {
  readonly key: string
}

type Entry = { readonly log_id: string } | { readonly segment: Segment } | { readonly blob: StoredBlob }

/** What earlier attempts stored that the manifest does not name. */
interface Progress {
  readonly segments: readonly Segment[]
  readonly blobs: readonly StoredBlob[]
}

/**
 * Records each complete file of a backup that is in progress, so that the next attempt continues it. It is only a saving of
 * time: a torn or missing line costs a copy.
 */
export class Journal {
  readonly #file: FileHandle

  private constructor(file: FileHandle) {
    this.#file = file
  }

  static async open(
    dir: string,
    log_id: string,
  ): Promise<{ readonly journal: Journal; readonly progress: Progress }> {
    const path = join(dir, JOURNAL)
    const entries = existsSync(path) ? entriesIn(readFileSync(path, 'utf8')) : []
    const isOfLog = entries.every((entry) => !('log_id' in entry) || entry.log_id === log_id)
    if (!isOfLog) rmSync(path)
    const journal = new Journal(await open(path, 'a', 0o600))
    await journal.add({ log_id })
    return { journal, progress: isOfLog ? progressIn(entries) : { segments: [], blobs: [] } }
  }

  async add(entry: Entry): Promise<void> {
    await this.#file.appendFile(`\n${JSON.stringify(entry)}`) // first the newline: the line before may be torn
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

const progressIn = (entries: readonly Entry[]): Progress => ({
  segments: entries.flatMap((entry) => ('segment' in entry ? [entry.segment] : [])),
  blobs: entries.flatMap((entry) => ('blob' in entry ? [entry.blob] : [])),
})

const entriesIn = (text: string): Entry[] =>
  text.split('\n').flatMap((line) => {
    try {
      const entry = JSON.parse(line) as unknown
      return typeof entry === 'object' && entry !== null ? [entry as Entry] : []
    } catch {
      return [] // empty, or torn by a crash
    }
  })
