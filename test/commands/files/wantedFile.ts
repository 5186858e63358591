/** What the API makes of an upload of a path by a client with all rights. */
export const wantedFile = (
  path: unknown,
  content: () => AsyncIterable<Buffer>,
  content_type: unknown = '',
) => ({
  path,
  content_type,
  run_id: null,
  rights: null,
  announced: null,
  content,
})
