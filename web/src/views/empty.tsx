/** What to do when no agent was heard yet. */

export function Empty() {
  return (
    <section class="note empty" data-testid="empty">
      <h2>No agent was heard yet</h2>
      <p>This page fills by itself as soon as one works. To get there:</p>
      <dl>
        <dt>
          <code>brimline setup</code>
        </dt>
        <dd>
          puts Brimline's hooks and status line into your agents' settings; then use them as ever.
        </dd>
        <dt>
          <code>brimline demo</code>
        </dt>
        <dd>replays recorded sessions, to see what this looks like.</dd>
        <dt>
          <code>brimline status</code>
        </dt>
        <dd>tells of the sessions that are in the agents' own files already.</dd>
      </dl>
    </section>
  );
}
