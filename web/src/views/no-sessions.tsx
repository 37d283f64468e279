/** What to do when there are no sessions yet. */

export function NoSessions() {
  return (
    <section class="note empty" data-testid="empty">
      <h2>No sessions yet</h2>
      <p>Sessions appear here as soon as an agent works. To get started:</p>
      <dl>
        <dt>
          <code>brimline setup</code>
        </dt>
        <dd>installs Brimline's hooks and status line in your agents; then use them as usual.</dd>
        <dt>
          <code>brimline demo</code>
        </dt>
        <dd>replays a recorded session in the terminal.</dd>
        <dt>
          <code>brimline status</code>
        </dt>
        <dd>lists the sessions that the agents' transcripts already have.</dd>
      </dl>
    </section>
  );
}
