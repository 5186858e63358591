import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { File } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { useLoaded } from '../frame/load.ts'
import { linkTo, param, query } from '../frame/router.ts'
import { maySome, refusalOf } from '../frame/session.ts'
import { Action } from '../parts/action.tsx'
import { TextField } from '../parts/fields.tsx'
import { Filters, TextFilter } from '../parts/filters.tsx'
import { saveBlob } from '../parts/json.tsx'
import { offsetOf, PAGE } from '../parts/pager.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Empty, shortId, sizeText, Time } from '../parts/texts.tsx'

/** The files of the environment, by path. */
export const Files = () => {
  const prefix = param('prefix')
  const files = useLoaded(
    (signal) => api.files.list({ ...(prefix && { prefix }), limit: PAGE, offset: offsetOf(), signal }),
    [query.value.toString()],
  )
  const columns: readonly Column<File>[] = [
    { name: 'Path', cell: ({ path }) => <code>{path}</code> },
    { name: 'Size', isNumber: true, cell: ({ size }) => sizeText(size) },
    { name: 'Type', cell: ({ content_type }) => content_type },
    { name: 'Written', cell: ({ updated_at }) => <Time at={updated_at} /> },
    {
      name: 'By run',
      isShort: true,
      cell: ({ updated_by_run_id }) => updated_by_run_id && <RunLink run_id={updated_by_run_id} />,
    },
    { name: 'Actions', cell: (file) => <FileActions file={file} onDone={files.reload} /> },
  ]
  return (
    <>
      <div class="heading">
        <h1>Files</h1>
        <Upload onDone={files.reload} />
      </div>
      <Filters label="Filter files">
        <TextFilter label="Path begins with" name="prefix" />
      </Filters>
      <List
        of={files}
        caption="Files by path"
        columns={columns}
        idOf={({ file_id }) => file_id}
        empty={
          <Empty command="npx svc files put ./report.csv report.csv">
            {prefix
              ? 'No file has such a path.'
              : 'No file is stored. Functions write files with files.put; so does the command line:'}
          </Empty>
        }
      />
    </>
  )
}

const RunLink = ({ run_id }: { readonly run_id: string }) => (
  <a href={linkTo(`/runs/${run_id}`)} title={run_id}>
    {shortId(run_id)}
  </a>
)

const FileActions = ({
  file: { file_id, path },
  onDone,
}: {
  readonly file: File
  readonly onDone: () => void
}) => (
  <div class="buttons">
    <Action
      label="Download"
      does={`Downloads ${path}.`}
      run={async () => {
        const response = await api.open('GET /v1/files/{file_id}/download', { path: { file_id } })
        saveBlob(path.split('/').at(-1) ?? path, await response.blob())
        return `Downloaded ${path}.`
      }}
    />
    <Action
      label="Delete"
      does={`Deletes ${path}. Functions that read it fail from then on.`}
      isDangerous
      asks
      refusal={refusalOf('file', 'delete', path)}
      run={async () => {
        await api.request('DELETE /v1/files/{file_id}', { path: { file_id } })
        onDone()
        return `Deleted ${path}.`
      }}
    />
  </div>
)

/** The path decides, which the reader has not chosen yet. To replace a file needs `update` only. */
const mayStore = (): boolean => maySome('file', 'create') || maySome('file', 'update')

const Upload = ({ onDone }: { readonly onDone: () => void }) => {
  const content = useSignal<globalThis.File | null>(null)
  const path = useSignal('')
  const sent = useSignal(0)
  /** Whether the reader wrote the path: then another file does not change it. */
  const hasWritten = useRef(false)
  return (
    <Action
      label="Upload"
      does="Stores a file of this computer. A file with the same path is replaced."
      refusal={mayStore() ? undefined : refusalOf('file', 'create')}
      onOpen={() => {
        content.value = null
        path.value = ''
        sent.value = 0
        hasWritten.current = false
      }}
      run={async () => {
        const [file, to] = [content.value, path.value] // the dialog can be opened again meanwhile
        if (!file) throw new Error('File: expected one, got none')
        await api.files.put(to, file, { onProgress: (bytes) => (sent.value = bytes) })
        onDone()
        return `Stored ${to}, ${sizeText(file.size)}.`
      }}
    >
      <label>
        File
        <input
          type="file"
          required
          onChange={({ currentTarget: { files } }) => {
            content.value = files?.[0] ?? null
            if (!hasWritten.current) path.value = content.value?.name ?? ''
          }}
        />
      </label>
      <TextField
        label="Path"
        required
        value={path.value}
        onChange={(value) => {
          path.value = value
          hasWritten.current = value !== ''
        }}
      />
      {sent.value > 0 && content.value && (
        <progress max={content.value.size} value={sent.value} aria-label="Progress">
          {sizeText(sent.value)}
        </progress>
      )}
    </Action>
  )
}
