import { file } from '../../src/domain/file.ts'
import { AppError } from '../../src/errors.ts'
import type { EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const ANY = ['create', 'update']
const given = givenOf(file, { env_id: 'env', correlation_id: 'c' })

const content = (key: string, file_id = 'f') => ({
  file_id,
  path: 'a/b.txt',
  key,
  size: key.length,
  etag: `"${key}"`,
  content_type: 'text/plain',
  storage_backend: 'disk',
})
const store = (key: string, { now = '1', run_id = null as string | null, file_id = 'f', may = ANY } = {}) => {
  const demand = (action: string) => {
    if (!may.includes(action)) throw new AppError('forbidden', action)
  }
  return { type: 'StoreFile', file: content(key, file_id), run_id, now, demand } as const
}
const stored = (key: string, more: Partial<EventOf<'FileStored'>> = {}): EventOf<'FileStored'> => ({
  type: 'FileStored',
  ...content(key),
  created_by_run_id: null,
  updated_by_run_id: null,
  created_at: '1',
  updated_at: '1',
  ...more,
})
const remove = { type: 'DeleteFile', file_id: 'f' } as const
const removed = (key: string): EventOf<'FileDeleted'> => ({
  type: 'FileDeleted',
  file_id: 'f',
  path: 'a/b.txt',
  former: { key, size: key.length },
})

const path = suite('a path')

path('receives a file', () => given().when(store('v1')).then(stored('v1')))

path('keeps its file and creation time with new content, and names the old content for removal', () =>
  given(stored('v1'))
    .when(store('v2 ', { now: '2' }))
    .then(stored('v2 ', { updated_at: '2', replaced: { key: 'v1', size: 2 } })),
)

path('remembers which run made the file and which wrote it last', () => {
  const made = stored('v1', { created_by_run_id: 'r1', updated_by_run_id: 'r1' })
  given()
    .when(store('v1', { run_id: 'r1' }))
    .then(made)
  const replaced = { key: 'v1', size: 2 }
  given(made)
    .when(store('v2', { run_id: 'r2' }))
    .then(stored('v2', { created_by_run_id: 'r1', updated_by_run_id: 'r2', replaced }))
  given(made)
    .when(store('v2'))
    .then(stored('v2', { created_by_run_id: 'r1', replaced }))
})

path('stores the same content once', () =>
  given(stored('v1'))
    .when(store('v1', { now: '9' }))
    .then(),
)

path('has no file after it was deleted, and can get another', () => {
  given(stored('v1')).when(remove).then(removed('v1'))
  given(stored('v1'), removed('v1')).when(remove).refuses('not_found')
  given(stored('v1'), removed('v1'))
    .when(store('v2', { now: '3', file_id: 'g' }))
    .then(stored('v2', { file_id: 'g', created_at: '3', updated_at: '3' }))
})

path('keeps its file, whatever id a concurrent writer proposed', () =>
  given(stored('v1'))
    .when(store('v2', { file_id: 'g' }))
    .then(stored('v2', { replaced: { key: 'v1', size: 2 } })),
)

path('receives a file from a writer that may create it, and new content from one that may update it', () => {
  const [create, update] = [{ may: ['create'] }, { may: ['update'] }]
  given().when(store('v1', create)).then(stored('v1'))
  given().when(store('v1', update)).refuses('forbidden')
  given(stored('v1')).when(store('v2', create)).refuses('forbidden')
  given(stored('v1'))
    .when(store('v2', update))
    .then(stored('v2', { replaced: { key: 'v1', size: 2 } }))
  given(stored('v1')).when(store('v1', create)).then()
  given(stored('v1'), removed('v1')).when(store('v2', update)).refuses('forbidden')
})

path('does not lose its file to a writer that expects another one', () => {
  given().when(remove).refuses('not_found')
  given(stored('v1')).when({ type: 'DeleteFile', file_id: 'g' }).refuses('not_found')
})

path.run()
