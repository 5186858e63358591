import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { FileUpload as FileUploadSchema } from '../../src/api/schemas.ts'
import { withBlobs } from '../support/blobs.ts'
import type { Api } from '../support/http.ts'

export type FileUpload = Static<typeof FileUploadSchema>

export const etagOf = (content: string) => `"${createHash('sha256').update(content).digest('hex')}"`

/** The files of a service: requests of the API key of `api`, and the stored contents in the data directory. */
export const storedFiles = ({ api, dataDir }: { readonly api: Api; readonly dataDir: string }) => ({
  async put(
    path: string,
    content: string | Uint8Array<ArrayBuffer>,
    { as = api, type = 'text/plain' }: { as?: Api; type?: string } = {},
  ): Promise<FileUpload> {
    const { status, json, text } = await as.send('PUT', `/files/upload/${path}`, {
      body: content,
      headers: { 'Content-Type': type },
    })
    assert.is(status, 200, text)
    return (json as { data: FileUpload }).data
  },

  get: (file_id: string, headers: Record<string, string> = {}) =>
    api.send('GET', `/files/${file_id}/download`, { headers }),

  /** Resolves with the number of stored contents. */
  contents: (): Promise<number> =>
    withBlobs(dataDir, async (blobs) => (await Array.fromAsync(blobs.list('files/'))).length),
})
