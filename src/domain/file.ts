import { AppError } from '../errors.ts'
import type { File } from '../events/file.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** The file at a path. */
interface FileAtPath {
  readonly file: File | null
  /** The keys of its latest former content, which is removed: a repeated command must not store it again. */
  readonly former: readonly string[]
}

/** The contents that other writers store during a repeated command are fewer. */
const FORMER = 16

export type FileCommand =
  | {
      readonly type: 'StoreFile'
      /** `file_id` is used only if the path has no file yet. */
      readonly file: Pick<
        File,
        'file_id' | 'path' | 'key' | 'size' | 'etag' | 'content_type' | 'storage_backend'
      >
      readonly run_id: string | null
      readonly now: string
      /** Throws `forbidden` unless the writer may do this at the path. */
      readonly demand: (action: 'create' | 'update') => void
    }
  | { readonly type: 'DeleteFile'; readonly file_id: string }

type FileEvent = EventOf<'FileStored' | 'FileDeleted'>

/**
 * A path of an environment is one stream, so a path has at most one file. Concurrent writers replace each other's file,
 * one after the other. Content is stored under its own key before a fact names it.
 */
export const file: Decider<FileAtPath, FileCommand, FileEvent> = {
  initial: () => ({ file: null, former: [] }),

  decide(command, { file: now, former }) {
    switch (command.type) {
      case 'StoreFile': {
        const { file, run_id } = command
        if (now?.key === file.key || former.includes(file.key)) return [] // a repeated command stores one file
        command.demand(now ? 'update' : 'create') // while the content was sent, others may have written to the path
        return [
          {
            type: 'FileStored',
            ...file,
            file_id: now?.file_id ?? file.file_id,
            created_by_run_id: now ? now.created_by_run_id : run_id,
            updated_by_run_id: run_id,
            created_at: now?.created_at ?? command.now,
            updated_at: command.now,
            ...(now && { replaced: { key: now.key, size: now.size } }),
          },
        ]
      }
      case 'DeleteFile': {
        if (now?.file_id !== command.file_id) throw new AppError('not_found', `No file ${command.file_id}`)
        const { file_id, path, key, size } = now
        return [{ type: 'FileDeleted', file_id, path, former: { key, size } }]
      }
      default:
        return command satisfies never
    }
  },

  evolve({ file: now, former }, { event }: Folded<FileEvent>) {
    const gone = now ? [...former.slice(1 - FORMER), now.key] : former
    switch (event.type) {
      case 'FileStored': {
        const { type: _, replaced: __, ...file } = event
        return { file, former: gone }
      }
      case 'FileDeleted':
        return { file: null, former: gone }
      default:
        return foreign(event)
    }
  },
}
