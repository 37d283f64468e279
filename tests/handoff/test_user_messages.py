"""Which messages of a user say something."""

import pytest

from brimline.handoff.user_messages import has_constraint, says_something

ACKNOWLEDGEMENTS = (
    "yep|ok|OK, continue|yes please|go ahead|hi|thanks!|looks good|👍|1|ok ok|..."
    "|sí, claro|ja, weiter|да|продолжай|继续|好的|はい|네"
)
REQUESTS = (
    "push it|fix that bug|use --as-json|do 12|see a.py|f0c674|/review|fix the tests|#170"
    "|no, revert that|mach die Tests grün|добавь тест|请修复失败的测试|テストを直してください"
)


@pytest.mark.parametrize("text", ACKNOWLEDGEMENTS.split("|"))
def test_acknowledgement_says_nothing(text: str) -> None:
    assert not says_something(text)


@pytest.mark.parametrize("text", REQUESTS.split("|"))
def test_request_says_something(text: str) -> None:
    assert says_something(text)


def test_constraint_is_a_limit_or_a_number() -> None:
    assert has_constraint("Never touch the README")
    assert has_constraint("at 70 %")
    assert has_constraint("不要修改文档")
    assert not has_constraint("Look at the parser")
